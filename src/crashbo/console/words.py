"""Why a point is suggested, in a sentence for the person beside the machine."""

from collections.abc import Mapping
from typing import Any

_INFORM = "Trying it says most about how good the best point that works can be."
_SENTENCES = {
    "initial": "An early point: the first ones are spread over the whole space to get to know it.",
    "gain": "It promises the largest gain, less the price of a crash.",
    "success": "No point is known to be safe enough yet: this one is the most likely to work.",
    "mes": _INFORM,
    "mesco": _INFORM,
    "cmes": _INFORM,  # this and the next are of version 0.1
    "logei": "It promises the largest improvement.",
}


def why(beliefs: Mapping[str, Any]) -> str:
    """Return why something was suggested, from what is kept with it."""
    mode = str(beliefs.get("mode", ""))
    sentence = _SENTENCES.get(mode) or _capital(str(beliefs.get("why", "")))
    success = beliefs.get("success_probability")
    if success is not None and success < 0.5 and mode != "initial":
        return f"{sentence} Be prepared: it may well crash."
    return sentence


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""

"""Formulas in docstrings: what stands under `Math:` is shown as it is written, line by line."""

import re
from typing import Any

from griffe import Extension, Object

_MATHS = re.compile(r"^Math:(?P<first>[^\n]*)\n?(?P<rest>(?:[ ]+[^\n]*(?:\n|\Z))*)", re.M)


class Maths(Extension):
    """Turns `Math:` in docstrings into a block of text: Markdown would take its stars and underscores for emphasis."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Called for every module, class, function and attribute that is read."""
        if obj.docstring is not None:
            obj.docstring.value = _MATHS.sub(_block, obj.docstring.value)


def _block(found: re.Match[str]) -> str:
    first, rest = found["first"].strip(), found["rest"].rstrip().split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    lines = [first] * bool(first) + [line[indent:] for line in rest if line.strip()]
    return "```text\n" + "\n".join(lines) + "\n```\n"

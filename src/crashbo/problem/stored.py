"""Settings as JSON, as studies, state files and other tools keep them; also those of version 0.1."""

from collections.abc import Mapping
from typing import Any

from crashbo.problem.history import OBJECTIVE
from crashbo.problem.options import FixedModel, Options

_FORMER = ("cmes", "logei")  # acquisitions of version 0.1


def strategy_in(stored: Mapping[str, Any]) -> tuple[str, str]:
    """Strategy and acquisition in settings that were stored, also by version 0.1, which had no strategies.

    There, an acquisition that was named, or fixed hyperparameters of the objective, meant the paper's method.
    """
    acquisition = stored.get("acquisition", "auto")
    if stored.get("strategy") is not None:
        return stored["strategy"], acquisition
    fixed = (stored.get("options") or {}).get("fixed") or {}
    strategy = "paper" if acquisition != "auto" or OBJECTIVE in fixed else "default"
    return strategy, "auto" if acquisition in _FORMER else acquisition


def options_from_json(data: Mapping[str, Any]) -> Options:
    """Read options as `dataclasses.asdict` writes them; also those of version 0.1."""
    values = dict(data)
    values["fixed"] = {name: FixedModel(**_tuples(one)) for name, one in dict(values.get("fixed") or {}).items()}
    return Options(**values)


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}

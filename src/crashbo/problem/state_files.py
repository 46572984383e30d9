"""The state of an optimizer as plain JSON, and in files."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashbo.errors import InputError
from crashbo.problem.durable import check_writable as check_writable
from crashbo.problem.durable import write_whole
from crashbo.problem.history import History
from crashbo.problem.problem import Problem, strategy_in
from crashbo.problem.state_fields import read_history

if TYPE_CHECKING:
    from crashbo.search.strategy import Strategy

_FORMAT, _FIRST_FORMAT = 2, 1  # the first one is that of version 0.1


def to_json(saved: History) -> dict[str, Any]:
    """Return a state as plain JSON; of a strategy of one's own, its name."""
    return {
        "format": _FORMAT,
        **saved.problem.to_json(),
        "initial_points": [dict(point) for point in saved.initial_points],
        "asked": saved.asked,
        "trials": [asdict(trial) for trial in saved.trials],
        "pending": [{"number": one.number, "params": dict(one), "why": asdict(one.why)} for one in saved.pending],
        "errors": {str(number): words for number, words in saved.errors.items()},
        "numbered": saved.numbered,
    }


def from_json(data: Any, strategy: "Strategy | None" = None) -> History:
    """Read a state that `to_json` wrote, also one of version 0.1.

    Args:
        data: what `to_json` returned.
        strategy: the object, if it was one of the user's own.

    Raises:
        InputError: that names the field which is wrong.
    """
    found = data.get("format") if isinstance(data, Mapping) else None
    if found not in (_FIRST_FORMAT, _FORMAT):
        raise InputError(f"`state` must be a saved optimizer of format {_FORMAT}; got format {found!r}.")
    return read_history(data if found == _FORMAT else _upgraded(data), strategy)


def _upgraded(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state of version 0.1 in today's format, as far as it is one; what is damaged stays as it is."""
    upgraded = dict(state)
    options = state.get("options")
    if isinstance(options, Mapping) and isinstance(options.get("fixed", {}), Mapping):
        upgraded["strategy"], upgraded["acquisition"] = strategy_in(state)
    if isinstance(state.get("pending"), list):
        upgraded["pending"] = [_without_correlation(one) for one in state["pending"]]
    return upgraded


def _without_correlation(point: Any) -> Any:
    """A pending suggestion of version 0.1 without what its reason does not say any more."""
    why = point.get("why") if isinstance(point, Mapping) else None
    if not isinstance(why, Mapping):
        return point
    return {**point, "why": {name: value for name, value in why.items() if name != "correlation"}}


def write_file(path: Path, saved: History) -> None:
    """Write a state to a file, whole or not at all; when this returns it is on the disk."""
    write_whole(path, json.dumps(to_json(saved), indent=1))


def read_file(path: Path, strategy: "Strategy | None" = None) -> History:
    """Read a state from a file; see `from_json`."""
    if path.is_dir():
        raise InputError(f"`path` must be a file written by `save`; {path} is a folder. Say a file in it.")
    try:
        data = json.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        words = "it is not a text" if isinstance(error, UnicodeDecodeError) else f"it is not JSON ({error})"
        raise InputError(f"`path` must be a file written by `save`; {path} is none: {words}.") from error
    return from_json(data, strategy)


def resume(
    path: Path, wanted: Problem | None, strategy: "Strategy | None", n_trials: int | None, *, any_seed: bool = False
) -> History:
    """Read a state to go on with, for as many trials as today's call says.

    Args:
        path: the file.
        wanted: the problem that it must belong to; None: whichever it is.
        strategy: the object, if it was one of the user's own.
        n_trials: in total.
        any_seed: whether its seed may be another.

    Raises:
        InputError: if it belongs to another problem.
    """
    saved = read_file(path, strategy)
    problem = replace(saved.problem, options=replace(saved.options, n_trials=n_trials))
    if wanted is not None:
        same = replace(wanted, seed=saved.seed) if any_seed else wanted
        _check_same_problem(same.to_json(), problem.to_json(), path)
    return replace(saved, problem=problem)


def _check_same_problem(wanted: Mapping[str, Any], found: Mapping[str, Any], path: Path) -> None:
    """All that makes a problem the same: everything but the number of trials."""
    for name, value in wanted.items():
        ours, theirs = ({**one, "n_trials": None} if name == "options" else one for one in (value, found[name]))
        if json.dumps(ours) != json.dumps(theirs):
            raise InputError(f"`state` must belong to the same problem; {path} has another {name}. Use another file.")

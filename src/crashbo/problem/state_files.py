"""The state of an optimizer as plain JSON, and in files."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashbo.errors import InputError
from crashbo.problem.durable import check_writable as check_writable
from crashbo.problem.durable import write_whole
from crashbo.problem.history import History, Settings
from crashbo.problem.outcome import Constraint, Trial
from crashbo.problem.space import Space
from crashbo.problem.state_fields import check_state, read_state
from crashbo.problem.stored import options_from_json, strategy_in
from crashbo.problem.suggestion import Reason, Suggestion

if TYPE_CHECKING:
    from crashbo.search.strategy import Strategy

_FORMAT, _FIRST_FORMAT = 2, 1  # the first one is that of version 0.1


def to_json(saved: History) -> dict[str, Any]:
    """Return a state as plain JSON; of a strategy of one's own, its name."""
    return {
        "format": _FORMAT,
        "space": saved.space.to_json(),
        "constraints": [asdict(one) for one in saved.constraints],
        "direction": saved.direction,
        "strategy": saved.strategy_name,
        "acquisition": saved.acquisition,
        "seed": saved.seed,
        "initial_points": [dict(point) for point in saved.initial_points],
        "options": asdict(saved.options),
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
    state = data if found == _FORMAT else _upgraded(data)
    check_state(state)
    if "numbered" not in state:
        state = _renumbered(state)
    pending = [Suggestion(one["params"], one["number"], Reason(**one["why"])) for one in state["pending"]]
    errors = {int(number): words for number, words in state.get("errors", {}).items()}
    out = {one.number for one in pending}
    settings = Settings.check(
        [Constraint(**one) for one in state["constraints"]],
        state["direction"],
        state["strategy"] if strategy is None else strategy,
        state["acquisition"],
        state["seed"],
        options_from_json(state["options"]),
    )
    return History(
        Space.from_json(state["space"]),
        tuple(Trial(**one) for one in state["trials"]),
        tuple(pending),
        state["asked"],
        tuple(state["initial_points"]),
        {number: words for number, words in errors.items() if number in out},
        state["numbered"],
        **vars(settings),
    )


def _upgraded(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state of version 0.1 in today's format, as far as it is one; what is damaged stays as it is."""
    upgraded = dict(state)
    options = state.get("options")
    if isinstance(options, Mapping) and isinstance(options.get("fixed", {}), Mapping):
        upgraded["strategy"], upgraded["acquisition"] = strategy_in(state)
    if isinstance(state.get("pending"), list):
        upgraded["pending"] = [_without_correlation(one) for one in state["pending"]]
    return upgraded


def _renumbered(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state of version 0.1 or 0.2, where trials and suggestions were counted apart, with one number for both.

    Trials keep theirs. Suggestions that are out get the next ones, in their order.
    """
    first = 1 + max((trial["number"] for trial in state["trials"]), default=-1)
    new = {str(one["number"]): first + i for i, one in enumerate(state["pending"])}
    pending = [{**one, "number": new[str(one["number"])]} for one in state["pending"]]
    errors = {str(new[number]): words for number, words in state.get("errors", {}).items() if number in new}
    return {**state, "pending": pending, "errors": errors, "numbered": first + len(pending)}


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
    return from_json(read_state(path), strategy)


def resume(
    path: Path, wanted: History | None, strategy: "Strategy | None", n_trials: int | None, *, any_seed: bool = False
) -> History:
    """Read a state to go on with, for as many trials as today's call says.

    Args:
        path: the file.
        wanted: a state of the problem that it must belong to; None: of whichever it is.
        strategy: the object, if it was one of the user's own.
        n_trials: in total.
        any_seed: whether its seed may be another.

    Raises:
        InputError: if it belongs to another problem.
    """
    saved = read_file(path, strategy)
    saved = replace(saved, options=replace(saved.options, n_trials=n_trials))
    if wanted is not None:
        same = replace(wanted, seed=saved.seed if any_seed else wanted.seed)
        _check_same_problem(to_json(same), to_json(saved), path)
    return saved


def _check_same_problem(wanted: Mapping[str, Any], found: Mapping[str, Any], path: Path) -> None:
    for name in ("space", "constraints", "direction", "strategy", "acquisition", "seed", "options"):
        if json.dumps(_problem(wanted[name])) != json.dumps(_problem(found[name])):
            raise InputError(f"`state` must belong to the same problem; {path} has another {name}. Use another file.")


def _problem(value: Any) -> Any:
    """What makes a problem the same: all settings but the number of trials."""
    return {name: one for name, one in value.items() if name != "n_trials"} if isinstance(value, dict) else value

"""Change what a study is about after it has begun; its trials stay, and what it was before is kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from crashbo.adapters.optuna.internals import study_id
from crashbo.adapters.optuna.transactions import writer
from crashbo.errors import InputError
from crashbo.problem.options import Options
from crashbo.problem.parameters import Categorical, Float, Parameter
from crashbo.problem.space import Space
from crashbo.store.definition import EDITS, UNITS, Definition, to_attributes
from crashbo.store.study import Study
from crashbo.store.words import changes, range_words


@dataclass(frozen=True)
class Edit:
    """What to change.

    Attributes:
        parameters: new ranges of parameters that there are, and new parameters.
        values: per new parameter, what it was in all trials so far.
        options: of `crashbo.Options`, by name; None takes one back to its default.
        units: by name; an empty one goes.
    """

    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)


def edit(study: Study, wanted: Edit, *, by: str = "") -> Study:
    """Change a study's definition in one transaction and return the study as it is then.

    Raises:
        InputError: and nothing is written.
    """
    if study.definition.plain:
        raise InputError(
            f"`study` must be made by `crashbo new` to be edited; {study.place.study!r} is another program's."
        )
    changed = edited(study.definition, wanted)
    _check_trials(study, wanted)
    lines, seen = changes(study.definition, changed), len(edits(study))
    if not lines:
        raise InputError("`edit` must change something; the study is like that already.")
    entry = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "changes": lines,
        "before": to_attributes(study.definition),
        **({"by": by} if by else {}),
    }

    def change(found: Mapping[str, Any]) -> dict[str, Any]:
        if len(found.get(EDITS, [])) != seen:
            raise InputError("`study` has been edited by somebody else meanwhile. Look at it with `crashbo edit`.")
        return to_attributes(changed) | {UNITS: dict(changed.units), EDITS: [*found.get(EDITS, []), entry]}

    with study.guarded():
        writer(study.inner).update(study_id(study.inner), change)
    return replace(study, definition=changed)


def edits(study: Study) -> list[dict[str, Any]]:
    """Every change of a study's definition, oldest first."""
    with study.guarded():
        return list(study.inner.user_attrs.get(EDITS, []))


def edited(definition: Definition, wanted: Edit) -> Definition:
    """Return a definition with changes.

    Raises:
        InputError: if one is not possible.
    """
    space = dict(definition.space)
    new = {name: one for name, one in wanted.parameters.items() if name not in space}
    for name, parameter in wanted.parameters.items():
        if name in space:
            _check_kind(name, space[name], parameter)
        space[name] = parameter
    defaults = {name: _old_value(name, one, wanted.values) for name, one in new.items()}
    unknown = [name for name in wanted.values if name not in new]
    if unknown:
        raise InputError(f"`{unknown[0]}` must be a new parameter to have a value for old trials; it is none.")
    options = {**definition.problem.options.changed(), **wanted.options}
    units = {**definition.units, **wanted.units}
    problem = replace(
        definition.problem,
        space=Space(space, definition.space.constraints),
        options=Options.from_json({name: value for name, value in options.items() if value is not None}),
    )
    return replace(
        definition,
        problem=problem,
        units={name: unit for name, unit in units.items() if unit},
        defaults={**definition.defaults, **defaults},
    )


def _check_kind(name: str, before: Parameter, after: Parameter) -> None:
    """Refuse what Optuna's storage cannot hold beside the trials that are there."""
    if isinstance(before, Categorical) and isinstance(after, Categorical) and before != after:
        raise InputError(
            f"`{name}` must keep its choices, {range_words(before)}: trials of one study cannot have different ones. "
            "Export the trials, make a new study and import them."
        )
    log = getattr(before, "log", None), getattr(after, "log", None)
    if type(before) is not type(after) or log[0] != log[1]:
        raise InputError(
            f"`{name}` must keep its kind, {range_words(before)}; got {range_words(after)}. Export the trials, make a "
            "new study and import them."
        )


def _old_value(name: str, parameter: Parameter, values: Mapping[str, Any]) -> Any:
    if name not in values:
        raise InputError(f"`{name}` must have a value for the trials so far: what was it then? Say --was {name}=VALUE.")
    return parameter.check(name, values[name])


def _check_trials(study: Study, wanted: Edit) -> None:
    """Refuse a range that leaves out trials with an outcome."""
    outside = []
    for record in study.records():
        told = record.status in ("finished", "crashed")
        for name, parameter in wanted.parameters.items():
            if told and name in record.params and not _inside(parameter, record.params[name]):
                outside.append((record.number, name, record.params[name]))
    if outside:
        number, name, value = outside[0]
        more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
        raise InputError(
            f"`{name}` must still hold what was tried: trial {number} has {value:g}{more}. Choose a wider range, or "
            "delete those trials first."
        )


def _inside(parameter: Parameter, value: Any) -> bool:
    try:
        parameter.check("value", value)
    except InputError:
        return isinstance(parameter, Float) and parameter.step is not None and parameter.low <= value <= parameter.high
    return True

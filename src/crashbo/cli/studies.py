"""Commands on a study: make it, ask it, look at it, bring trials in and out."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crashbo.cli.options import (
    BudgetOption,
    ChoiceOption,
    ConstraintOption,
    FloatOption,
    IntOption,
    JsonOption,
    LogOption,
    RiskOption,
    StorageOption,
    StrategyOption,
    StudyOption,
    TryOption,
    UnitOption,
    YesOption,
    confirm,
    print_json,
    say,
    split_point,
    split_values,
)
from crashbo.errors import InputError
from crashbo.problem.durable import check_writable, write_whole

if TYPE_CHECKING:
    from crashbo.store.definition import Definition
    from crashbo.store.study import Study

SpaceOption = Annotated[Path | None, typer.Option("--space", help="A YAML or JSON file with the parameters.")]
MaximizeOption = Annotated[bool, typer.Option("--maximize", help="More is better.")]
SeedChoice = Annotated[
    int | None, typer.Option("--seed", min=0, help="Same seed and machine, same suggestions.  [default: 0]")
]


def new(
    space: SpaceOption = None,
    floats: FloatOption = None,
    logs: LogOption = None,
    ints: IntOption = None,
    choices: ChoiceOption = None,
    constraints: ConstraintOption = None,
    maximize: MaximizeOption = False,
    seed: SeedChoice = None,
    strategy: StrategyOption = None,
    units: UnitOption = None,
    risk: RiskOption = None,
    crash_budget: BudgetOption = None,
    first: TryOption = None,
    yes: YesOption = False,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Make a study: `crashbo new --float kp 0 10 --log kd 1e-3 1 --constraint reach`, or --space space.yaml."""
    options = {"risk": risk, "crash_budget": crash_budget}
    definition = define(space, floats, logs, ints, choices, constraints, maximize, seed, units, options, strategy)
    if definition is None:
        raise InputError("`space` must have a parameter; got none. Say --float NAME LOW HIGH or --space FILE.")
    from crashbo.cli.tables import define_words
    from crashbo.store.files import to_file
    from crashbo.store.recording import enqueue
    from crashbo.store.storage import find_place, foreign_tables
    from crashbo.store.study import create_study
    from crashbo.store.values import parse_params

    points = [parse_params(definition, split_point(text)) for text in first or []]
    place = find_place(storage, study)
    others = foreign_tables(place)
    if others:
        named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        confirm(f"{place} is the database of another application ({named}). Put the study into it?", yes)
    made = create_study(place, definition)
    queued = [enqueue(made, point) for point in points]
    if json_output:
        about = {"study": made.place.study, "storage": str(made.place), **to_file(definition)}
        print_json(about | ({"queued": queued} if queued else {}))
    else:
        say(define_words(made, points))


def define(
    space: Path | None,
    floats: list[str] | None,
    logs: list[str] | None,
    ints: list[str] | None,
    choices: list[str] | None,
    constraints: list[str] | None,
    maximize: bool,
    seed: int | None,
    units: list[str] | None,
    options: Mapping[str, Any],
    strategy: str | None = None,
) -> "Definition | None":
    """Return what the options and the file say together; None if they name no parameter."""
    from crashbo.store.files import make_definition, read_definition
    from crashbo.store.values import split_pairs

    found: dict[str, Any] = read_definition(space) if space else {"parameters": {}}
    parameters: dict[str, Any] = dict(found["parameters"])
    for name, entry in entries(floats, logs, ints, choices):
        if name in parameters:
            raise InputError(f"`{name}` must be given once; got it twice. Remove one.")
        parameters[name] = entry
    limits = found.get("constraints") or {}
    found["constraints"] = (limits if isinstance(limits, dict) else dict.fromkeys(limits)) | _limits(constraints or [])
    found["units"] = (found.get("units") or {}) | split_pairs(units or [])
    if maximize:
        found["direction"] = "maximize"
    if seed is not None:
        found["seed"] = seed
    if strategy is not None:
        found["strategy"] = strategy
    given = {name: value for name, value in options.items() if value is not None}
    found["options"] = (found.get("options") or {}) | given
    return make_definition(**found | {"parameters": parameters}) if parameters else None


def entries(
    floats: list[str] | None, logs: list[str] | None, ints: list[str] | None, choices: list[str] | None
) -> list[tuple[str, dict[str, Any]]]:
    """Parameters given as options, as a file would have them."""
    from crashbo.store.values import parse_number

    entries: list[tuple[str, dict[str, Any]]] = []
    for option, texts, more in (
        ("--float", floats, {"type": "float"}),
        ("--log", logs, {"type": "float", "log": True}),
        ("--int", ints, {"type": "int"}),
    ):
        for text in texts or []:
            name, low, high = split_values(option, text)
            entries.append((name, {"low": parse_number(name, low), "high": parse_number(name, high), **more}))
    for text in choices or []:
        name, words = split_values("--choice", text)
        entries.append((name, {"choices": [word.strip() for word in words.split(",")]}))
    return entries


def _limits(constraints: list[str]) -> dict[str, float | None]:
    from crashbo.store.values import parse_number

    parts = [text.partition("=") for text in constraints]
    return {name: parse_number(name, limit) if sign else None for name, sign, limit in parts}


def _open(storage: str | None, study: str | None) -> "Study":
    from crashbo.store.storage import find_place
    from crashbo.store.study import open_study

    return open_study(find_place(storage, study), quick=True)


def ask(
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many, planned together.")] = 1,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Suggest what to try next, and say why."""
    opened = _open(storage, study)
    from crashbo.cli.tables import asked_words
    from crashbo.store.asking import ask as suggest

    found = []
    for _ in range(n):
        asked = suggest(opened)
        if asked is not None:
            found.append(asked)
            if not json_output:  # a person may begin with the first while the others are computed
                say(asked_words(opened.definition, asked))
    if json_output:
        print_json([_asked_json(asked) for asked in found] if n > 1 else _asked_json(found[0]))


def _asked_json(asked: Any) -> dict[str, Any]:
    return {
        "number": asked.number,
        "params": asked.params,
        "why": asked.why,
        "success_probability": asked.success_probability,
        "thresholds": dict(asked.thresholds),
        "deviations": dict(asked.deviations),
        "relation": dict(asked.relation),
    }


def status(
    model: Annotated[bool, typer.Option("--model/--no-model", help="Fit the model: limits and best guess.")] = True,
    last: Annotated[int | None, typer.Option(min=1, help="Only the last trials.")] = None,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show the trials, the learned limits and the best guess."""
    opened = _open(storage, study)
    from crashbo.cli.tables import print_status
    from crashbo.store.study import best_seen, counts
    from crashbo.store.transfer import export_json

    records = opened.records()
    tally = counts(opened.definition, records)
    outlook = None
    if model and tally["finished"] + tally["crashed"] + tally["pruned"]:
        from crashbo.store.model import look

        outlook = look(opened)
    if not json_output:
        print_status(opened, records, outlook, last)
        return
    seen = best_seen(opened.definition, records)
    print_json(
        {
            **export_json(opened),
            "storage": str(opened.place),
            "counts": tally,
            "best_trial": None if seen is None else seen.number,
            "best": None if outlook is None else vars(outlook.best),
            "learned_thresholds": None if outlook is None else outlook.to_json()["thresholds"],
            "limits": None if outlook is None else outlook.to_json()["limits"],
            "relation": None if outlook is None else outlook.to_json()["relation"],
            "crash_relation": None if outlook is None else outlook.crash_relation,
            "places": None if outlook is None else list(outlook.places),
        }
    )


def best(storage: StorageOption = None, study: StudyOption = None, json_output: JsonOption = False) -> None:
    """Print the model's best guess, and the best trial beside it."""
    opened = _open(storage, study)
    from crashbo.cli.tables import best_words
    from crashbo.store.model import look
    from crashbo.store.study import best_seen

    outlook = look(opened)
    seen = best_seen(opened.definition, opened.records())
    if json_output:
        trial = None if seen is None else {"number": seen.number, "objective": seen.objective, "params": seen.params}
        print_json({**vars(outlook.best), **outlook.to_json(), "best_trial": trial})
    else:
        say(best_words(opened.definition, outlook, seen))


def show(
    number: Annotated[int, typer.Argument(metavar="NUMBER", min=0, max=2**31 - 1, help="Of the trial.")],
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show one trial: params, outcome, why it was suggested, and every correction."""
    opened = _open(storage, study)
    from crashbo.cli.tables import trial_words
    from crashbo.store.recording import history
    from crashbo.store.transfer import trial_json

    trial = opened.trial(number)
    record = next(one for one in opened.records() if one.number == number)
    found = trial_json(opened, record, trial, history(opened, number))
    if json_output:
        print_json(found)
    else:
        say(trial_words(opened.definition, found))


def import_(
    file: Annotated[
        Path, typer.Argument(help="CSV: a column per parameter, objective, one per constraint; or an export as JSON.")
    ],
    again: Annotated[bool, typer.Option("--again", help="Also add rows that the study has already.")] = False,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Add earlier trials from a CSV file, or from an export as JSON; an empty objective, or nan, is a crash."""
    opened = _open(storage, study)
    from crashbo.store.importing import import_file

    done = import_file(opened, file, again=again)
    if json_output:
        found = {"numbers": list(done.numbers), "known": done.known, "skipped": done.skipped}
        print_json(found | {"ignored": list(done.ignored)})
        return
    known = f" {done.known} are in the study already (--again adds them)." if done.known else ""
    skipped = f" {done.skipped} have no outcome." if done.skipped else ""
    ignored = f" Ignored: {', '.join(done.ignored)}." if done.ignored else ""
    say(f"Imported {len(done.numbers)} trials.{known}{skipped}{ignored}")


def export(
    file: Annotated[Path | None, typer.Argument(help="Ends in .csv or .json; without it, CSV is printed.")] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Leave texts as they are that a spreadsheet would compute.")
    ] = False,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Write all trials as CSV, or the whole study as JSON.

    In CSV a ' goes before texts that a spreadsheet would take for a formula; `crashbo import` takes it away.
    """
    import json

    if file is not None and file.suffix not in (".csv", ".json"):
        raise InputError(f"`file` must end in .csv or .json; got {file}.")
    if file is not None:
        check_writable("file", file)
    opened = _open(storage, study)
    from crashbo.store.transfer import export_csv, export_json

    whole = json_output if file is None else file.suffix == ".json"
    text = json.dumps(export_json(opened), indent=2) + "\n" if whole else export_csv(opened, raw=raw)
    if file is None:
        typer.echo(text, nl=False)
    else:
        write_whole(file, text)
        typer.echo(f"Wrote {file}.")

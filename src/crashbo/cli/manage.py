"""Commands on studies as a whole: list, change, rename and remove them."""

from typing import Annotated, Any

import typer

from crashbo.cli.options import (
    BudgetOption,
    ByOption,
    ChoiceOption,
    FloatOption,
    IntOption,
    JsonOption,
    LogOption,
    RiskOption,
    StorageOption,
    StudyOption,
    TryOption,
    UnitOption,
    YesOption,
    confirm,
    print_json,
    say,
    split_point,
)
from crashbo.cli.studies import entries
from crashbo.errors import InputError

WasOption = Annotated[
    list[str] | None,
    typer.Option("--was", metavar="NAME=VALUE ...", help="What a new parameter was in the trials so far."),
]
NameArgument = Annotated[str | None, typer.Argument(metavar="[STUDY]", help="Its name.  [default: the only one]")]


def list_(storage: StorageOption = None, json_output: JsonOption = False) -> None:
    """List all studies of a file or a server, whoever made them."""
    from crashbo.store.shelf import list_studies
    from crashbo.store.storage import find_place

    place = find_place(storage)
    found = list_studies(place)
    if json_output:
        print_json([vars(one) for one in found])
        return
    say(f"{place}: {len(found)} {'study' if len(found) == 1 else 'studies'}")
    for one in found:
        running = f", {one.running} under way" if one.running else ""
        last = f", the last began {one.last}" if one.last else ""
        maker = "" if one.ours else ", made by another program"
        say(f"  {one.name}: {one.direction}, {one.trials} trials{running}{last}{maker}")


def rename(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Give a study another name: `crashbo rename leg --study arm`."""
    from crashbo.store.shelf import rename_study
    from crashbo.store.storage import find_place

    before = rename_study(find_place(storage, study), name)
    if json_output:
        print_json({"before": before, "study": name})
    else:
        say(f"Study {before!r} is called {name!r} now.")


def remove(
    name: NameArgument = None,
    yes: YesOption = False,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Remove a study with all its trials, for ever; asks first."""
    from crashbo.store.shelf import find_study, remove_study
    from crashbo.store.storage import find_place

    place = find_place(storage, study or name)
    found = find_study(place)
    running = f", {found.running} of them under way" if found.running else ""
    confirm(f"Remove the study {found.name!r} in {place} with its {found.trials} trials{running}, for ever?", yes)
    remove_study(place, found.name)
    if json_output:
        print_json({"removed": found.name, "trials": found.trials})
    else:
        say(f"Removed {found.name!r} with {found.trials} trials.")


def edit(
    floats: FloatOption = None,
    logs: LogOption = None,
    ints: IntOption = None,
    choices: ChoiceOption = None,
    was: WasOption = None,
    units: UnitOption = None,
    risk: RiskOption = None,
    crash_budget: BudgetOption = None,
    first: TryOption = None,
    by: ByOption = "",
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Change a study: widen a range (`--float kp 0 20`), add a parameter (`--float kx 0 1 --was kx=0.5`), the risk.

    Trials stay, and what the study was before is kept. Without options it prints the study and all its changes.
    """
    from crashbo.store.editing import Edit
    from crashbo.store.editing import edit as change
    from crashbo.store.editing import edits as all_edits
    from crashbo.store.files import make_parameter
    from crashbo.store.recording import check_text, enqueue
    from crashbo.store.storage import find_place
    from crashbo.store.study import open_study
    from crashbo.store.values import parse_params, parse_value, split_pairs

    opened = open_study(find_place(storage, study))
    given = entries(floats, logs, ints, choices)
    twice = [name for name, _ in given if [one for one, _ in given].count(name) > 1]
    if twice:
        raise InputError(f"`{twice[0]}` must be given once; got it twice. Remove one.")
    parameters = {name: make_parameter(name, entry) for name, entry in given}
    texts = {name: text for words in was or [] for name, text in split_point(words).items()}
    values: dict[str, Any] = {
        name: parse_value(parameters[name], name, text) if name in parameters else text for name, text in texts.items()
    }
    options = {name: one for name, one in {"risk": risk, "crash_budget": crash_budget}.items() if one is not None}
    wanted = Edit(parameters, values, options, split_pairs(units or []))
    if wanted != Edit():
        opened = change(opened, wanted, by=check_text("by", by))
    points = [parse_params(opened.definition, split_point(text)) for text in first or []]
    queued = [enqueue(opened, point) for point in points]
    found = all_edits(opened)
    if json_output:
        from crashbo.store.files import to_file

        shown = [{name: value for name, value in one.items() if name != "before"} for one in found]
        print_json({"study": opened.place.study, **to_file(opened.definition), "edits": shown, "queued": queued})
        return
    from crashbo.cli.tables import define_words

    said = [line for line in define_words(opened, points).split("\n") if not line.startswith("Next:")]
    for one in found:
        who = f", by {one['by']}" if one.get("by") else ""
        said += [f"Changed {one['time']}{who}:", *(f"  {line}" for line in one["changes"])]
    say("\n".join(said))

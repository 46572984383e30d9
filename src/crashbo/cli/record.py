"""Commands that record what came of a trial. They write first and need no model."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from crashbo.cli.options import ByOption, JsonOption, KeyOption, StorageOption, StudyOption, say_stored, to_json
from crashbo.errors import InputError

if TYPE_CHECKING:
    from crashbo.problem.outcome import Outcome
    from crashbo.store.study import Study

NumberArgument = Annotated[int, typer.Argument(metavar="NUMBER", min=0, max=2**31 - 1, help="Of the trial.")]
ReasonOption = Annotated[str, typer.Option(help="In words.")]
ParamsOption = Annotated[
    bool, typer.Option("--params", help="The point was never asked for: give name=value for each.")
]


def _open(storage: str | None, study: str | None) -> "Study":
    """Open a study just to write a line."""
    from crashbo.store.storage import find_place
    from crashbo.store.study import open_study

    return open_study(find_place(storage, study), quick=True)


def tell(
    words: Annotated[
        list[str],
        typer.Argument(metavar="NUMBER VALUE [NAME=VALUE]...", help="Trial, cost, and a value for each constraint."),
    ],
    params: ParamsOption = False,
    by: ByOption = "",
    key: KeyOption = None,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Record the cost of a trial: `crashbo tell 3 0.73 reach=11.2`; `reach=violated` if that violated its limit."""
    _refuse_options("tell", words)
    opened = _open(storage, study)
    from crashbo.problem.outcome import check_outcome
    from crashbo.store import recording
    from crashbo.store.values import parse_constraints, parse_outcome, parse_params, short, split_words

    plain, point, rest = split_words(opened.definition, words)
    _check_words(plain, point, params, ["NUMBER", "VALUE"], ["VALUE"])
    cost = parse_outcome("VALUE", plain[-1], "For a failed trial use `crashbo crash`.")
    seen = parse_constraints(opened.definition, rest)
    outcome = check_outcome(cost, seen, opened.definition.constraints)
    if params:
        number = recording.add(opened, parse_params(opened.definition, point), cost, seen, key=key, by=by)
    else:
        number = _number(plain[0])
        recording.tell(opened, number, cost, seen, key=key, by=by)
    said = {"number": number, **_told(outcome), "constraints": rest}
    _say(json_output, said, "crashed" if outcome.objective is None else short(cost))


def _told(outcome: "Outcome") -> dict[str, Any]:
    """What was recorded; a cost that is none is a crash."""
    if outcome.objective is None:
        return {"status": "crashed", "objective": None, "reason": outcome.reason}
    return {"status": "finished", "objective": outcome.objective}


def crash(
    words: Annotated[
        list[str],
        typer.Argument(metavar="NUMBER [NAME=VALUE]...", help="Trial, and constraints seen before."),
    ],
    reason: ReasonOption = "",
    transient: Annotated[
        bool, typer.Option("--transient", help="It says nothing about the params: offer them again.")
    ] = False,
    params: ParamsOption = False,
    by: ByOption = "",
    key: KeyOption = None,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Record that a trial crashed: `crashbo crash 3 --reason fell reach=11.2`."""
    _refuse_options("crash", words)
    opened = _open(storage, study)
    from crashbo.store import recording
    from crashbo.store.values import parse_constraints, parse_params, split_words

    plain, point, rest = split_words(opened.definition, words)
    _check_words(plain, point, params, ["NUMBER"], [])
    seen = parse_constraints(opened.definition, rest)
    if transient and (params or rest):
        raise InputError("`--transient` must come with a trial's number only; nothing else is learned from it.")
    if params:
        number = recording.add(opened, parse_params(opened.definition, point), None, seen, reason, key=key, by=by)
    elif transient:
        number = _number(plain[0])
        recording.transient(opened, number, reason, key=key, by=by)
    else:
        number = _number(plain[0])
        recording.crash(opened, number, reason, seen, key=key, by=by)
    status = "transient" if transient else "crashed"
    said = {"number": number, "status": status, "constraints": rest, "reason": reason}
    _say(json_output, said, "transient, its params will be offered again" if transient else "crashed")


def skip(
    number: NumberArgument,
    reason: ReasonOption = "",
    by: ByOption = "",
    key: KeyOption = None,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Leave a suggestion that nobody will run: nothing is learned from it, and the next one is another."""
    from crashbo.store import recording

    recording.skip(_open(storage, study), number, reason, key=key, by=by)
    _say(json_output, {"number": number, "status": "skipped", "reason": reason}, "skipped")


def correct(
    words: Annotated[
        list[str], typer.Argument(metavar="NUMBER [VALUE] [NAME=VALUE]...", help="Trial, and what is right.")
    ],
    crashed: Annotated[bool, typer.Option("--crashed", help="It crashed after all.")] = False,
    transient: Annotated[bool, typer.Option("--transient", help="It says nothing after all: offer it again.")] = False,
    clear: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Take back a constraint's value: it was never seen.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="In words; else a crash keeps its own.", show_default=False)
    ] = None,
    by: ByOption = "",
    key: KeyOption = None,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Correct a finished trial: `crashbo correct 3 0.7`, or `reach=9` alone, or --crashed, or --transient."""
    _refuse_options("correct", words)
    opened = _open(storage, study)
    from crashbo.store import recording
    from crashbo.store.values import parse_constraints, parse_outcome, short, split_words

    plain, point, rest = split_words(opened.definition, words)
    alone = bool(rest or clear) and len(plain) == 1 and not (crashed or transient)  # constraints; the rest stays
    valued = not (crashed or transient or alone)
    if (crashed and transient) or point or len(plain) != 1 + valued:
        raise InputError(
            "`correct` must get a NUMBER and one of VALUE, NAME=VALUE, --crashed and --transient; see --help."
        )
    number = _number(plain[0])
    status = "crashed" if crashed else "transient" if transient else None if alone else "finished"
    cost = parse_outcome("VALUE", plain[1]) if valued else None
    seen = parse_constraints(opened.definition, rest)
    gone = tuple(clear or ())
    now = recording.correct(
        opened, number, status=status, objective=cost, constraints=seen, clear=gone, reason=reason, key=key, by=by
    )
    cost, word = now.objective, now.word
    said = {"number": number, "status": word, "objective": cost, "constraints": rest, "reason": now.reason}
    without = f", without {' and '.join(gone)}" if gone else ""
    _say(json_output, said | {"cleared": list(gone)}, f"corrected to {word if cost is None else short(cost)}{without}")


def delete(
    number: NumberArgument,
    reason: ReasonOption = "",
    by: ByOption = "",
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Leave a finished trial out; `crashbo restore` brings it back."""
    from crashbo.store import recording

    recording.correct(_open(storage, study), number, status="deleted", reason=reason, by=by)
    _say(json_output, {"number": number, "status": "deleted", "reason": reason}, "deleted")


def restore(
    number: NumberArgument,
    by: ByOption = "",
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Bring a deleted trial back."""
    from crashbo.store import recording

    recording.correct(_open(storage, study), number, status="restored", by=by)
    _say(json_output, {"number": number, "status": "restored"}, "restored")


def _refuse_options(command: str, words: list[str]) -> None:
    """Refuse what looks like an option; Typer lets all unknown ones through, since a value may be negative."""
    for word in words:
        if word.startswith("-") and not _is_number(word):
            raise InputError(f"No such option: {word.partition('=')[0]}. See `crashbo {command} --help`.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise InputError(f"`NUMBER` must be the number of a trial; got {text!r}. `crashbo status` lists them.")
    return int(text)


def _check_words(plain: list[str], point: Any, params: bool, asked: list[str], new: list[str]) -> None:
    """Check how many plain words there are, and that params come with --params."""
    if point and not params:
        raise InputError(f"`{next(iter(point))}` must come with --params, for a point that was never asked for.")
    wanted = new if params else asked
    if len(plain) != len(wanted):
        got = " ".join(plain) or "nothing"
        raise InputError(f"`arguments` must be {' '.join(wanted) or 'name=value only'}; got {got}.")


def _say(json_output: bool, said: dict[str, Any], words: str) -> None:
    from crashbo.store.values import visible

    if json_output:
        say_stored(to_json(said))
        return
    seen = "".join(f", {name} = {text}" for name, text in said.get("constraints", {}).items())
    reason = f" ({visible(said['reason'])})" if said.get("reason") else ""
    say_stored(f"Trial {said['number']}: {words}{seen}{reason}.")

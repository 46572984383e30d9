"""Studies and trials in words and tables, for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crashbo.adapters.optuna.codec import Record
from crashbo.store.definition import Definition
from crashbo.store.plain import extra_names
from crashbo.store.study import Study, best_seen, counts
from crashbo.store.values import sentence, short, visible
from crashbo.store.words import range_words

if TYPE_CHECKING:
    from crashbo.store.asking import Asked
    from crashbo.store.model import Outlook

_STYLES = {"finished": "", "crashed": "red", "pending": "cyan", "pruned": "dim", "ignored": "dim"}


def define_words(study: Study, points: Sequence[Mapping[str, Any]] = ()) -> str:
    """A study in words, and the points that are to be tried first."""
    definition = study.definition
    lines = [f"Study {study.place.study!r} in {study.place}: {definition.direction} {definition.label('objective')}"]
    lines += [f"  {definition.label(name)}: {range_words(definition.space[name])}" for name in definition.space]
    for one in definition.constraints:
        limit = "a limit to be learned" if one.threshold is None else f"{one.threshold:g}"
        lines.append(f"  {definition.label(one.name)} must stay below {limit}")
    lines += [f"  first: {sentence(point)}" for point in points]
    return "\n".join([*lines, "Next: crashbo ask"])


def valued(definition: Definition, values: Mapping[str, Any]) -> list[str]:
    """One line for each value, with its unit."""
    units = definition.units
    return [f"  {name} = {_long(value)} {units.get(name, '')}".rstrip() for name, value in values.items()]


def _long(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else short(value)


def asked_words(definition: Definition, asked: "Asked") -> str:
    """A suggestion in words, and what to type next."""
    more = "".join(f" {name}=..." for name in definition.constraint_names)
    value = "COST" if definition.direction == "minimize" else "VALUE"
    return "\n".join(
        [
            f"Trial {asked.number}",
            *valued(definition, asked.params),
            f"Why: {asked.why}",
            f"Then: crashbo tell {asked.number} {value}{more}, or crashbo crash {asked.number} --reason ...",
        ]
    )


def best_words(definition: Definition, outlook: "Outlook", seen: Record | None) -> str:
    """The best guess, the limits, what crashes have to do with the objective, and the best trial, in words."""
    from crashbo.model.words import describe_limit

    guess = outlook.best
    unit = definition.units.get("objective", "")
    lines = ["Best guess:", *valued(definition, guess.params)]
    if guess.mean == guess.mean:
        lines.append(f"  expected: {guess.mean:.6g} ± {guess.std:.2g} {unit}".rstrip())
    lines.append(f"  success probability: {guess.success_probability:.1%}")
    if not guess.feasible:
        lines.append("  No point is safe enough yet: this one is the most likely to succeed.")
    if outlook.limits:
        given = {one.name for one in definition.constraints if one.threshold is not None}
        learned = {name: "" if name in given else " (learned)" for name in outlook.limits}
        limits = [f"{name}{learned[name]} {describe_limit(one)}" for name, one in outlook.limits.items()]
        lines.append(f"Limits: {', '.join(limits)}")
    if outlook.relation is not None:
        lines.append(outlook.crash_relation)
    lines += outlook.places
    if seen is not None:
        lines.append(f"Best trial: {seen.number}, {seen.objective:.6g} {unit}".rstrip())
    return "\n".join(lines)


def trial_words(definition: Definition, found: Mapping[str, Any]) -> str:
    """One trial with its history, from its JSON."""
    state = next((word for word in ("deleted", "skipped", "transient") if found[word]), found["status"])
    cost = "" if found["objective"] is None else f", {found['objective']:.8g}"
    reason = f" ({visible(found['reason'])})" if found["reason"] else ""
    lines = [f"Trial {found['number']}: {state}{cost}{reason}", *valued(definition, found["params"])]
    lines += [f"  {name}: {short(value)}" for name, value in found["constraints"].items()]
    if found.get("why"):
        lines.append(f"Why: {found['why']}")
    if found["corrections"]:
        lines.append(f"Recorded first{_entry_words(found['recorded_first'])}")
    lines += [f"Corrected{_entry_words(entry)}" for entry in found["corrections"]]
    return "\n".join(lines)


def _entry_words(entry: Mapping[str, Any]) -> str:
    """When, what and why of an entry in a trial's history."""
    time = f" {entry['time']}" if entry["time"] else ""
    value = "" if entry["objective"] is None else f" {entry['objective']:.8g}"
    seen = "".join(f", {name} {short(one)}" for name, one in entry["constraints"].items())
    by = f", by {visible(entry['by'])}" if entry.get("by") else ""
    why = f" ({visible(entry['reason'])})" if entry["reason"] else ""
    return f"{time}: {entry['status']}{value}{seen}{by}{why}"


def print_status(study: Study, records: Sequence[Record], outlook: "Outlook | None", last: int | None) -> None:
    """Print the table of trials, a count, and what the model believes."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)  # a file or a pipe has no width
    words = visible(f"Study {study.place.study!r} in {study.place}: {tally_words(study.definition, records)}")
    console.print(words, markup=False, soft_wrap=True)
    if records:
        console.print(_table(study.definition, records[-last:] if last else records))
    if outlook is not None:
        seen = best_seen(study.definition, records)
        for line in best_words(study.definition, outlook, seen).split("\n"):
            console.print(visible(line), markup=False, soft_wrap=True)


def tally_words(definition: Definition, records: Sequence[Record]) -> str:
    """How many trials ended in what, in the words of docs/glossary.md."""
    tally = counts(definition, records)
    violated = tally["failed"] - tally["crashed"]
    among = f" ({violated} violated a limit)" if violated else ""
    parts = [f"{tally['finished']} finished{among}", f"{tally['crashed']} crashed", f"{tally['pending']} under way"]
    others = Counter(record.word for record in records if record.status in ("pruned", "ignored"))
    parts += [f"{others[word]} {word}" for word in ("pruned", "transient", "skipped", "deleted") if others[word]]
    return ", ".join(parts)


def _table(definition: Definition, records: Sequence[Record]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("trial", justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    names = [*definition.space, *extra_names(records, definition)]
    for name in (*names, "objective", *definition.constraint_names):
        table.add_column(Text(visible(definition.label(name))), justify="right", min_width=6)
    table.add_column("reason", overflow="fold", ratio=1)
    for record in records:
        failed = record.failed_under(definition.constraints)
        style = _STYLES["crashed" if failed else record.status]
        table.add_row(*(Text(cell) for cell in _cells(definition, names, record)), style=style)
    return table


def _cells(definition: Definition, names: Sequence[str], record: Record) -> list[str]:
    params = [short(record.params[name]) if name in record.params else "" for name in names]
    seen = [
        "" if name not in record.constraints else _seen(record.constraints[name])
        for name in definition.constraint_names
    ]
    cost = "" if record.objective is None else f"{record.objective:.6g}"
    word = "under way" if record.word == "pending" else record.word
    return [visible(cell) for cell in (str(record.number), word, *params, cost, *seen, record.reason)]


def _seen(value: float | None) -> str:
    return "violated" if value is None else f"{value:.5g}"

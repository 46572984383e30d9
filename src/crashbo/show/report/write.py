"""Write a report."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import crashbo
from crashbo.errors import InputError
from crashbo.problem.history import OBJECTIVE
from crashbo.show.importance import Importance, importance
from crashbo.show.report import page, summary
from crashbo.show.report.pictures import inert, sections
from crashbo.show.report.trials import trials_section
from crashbo.show.theme import DARK, LIGHT, see_through
from crashbo.show.views import Source, View, view

_VERSIONS = ("numpy", "scipy", "plotly")
_DRAWING = "plotly-cartesian.min.js"  # plotly.js without 3D and maps: a third of the size, all that a report draws


@dataclass(frozen=True)
class Extra:
    """Your own picture in a report.

    Attributes:
        title: title of its section.
        words: text under the title.
        picture: a PNG, GIF, JPEG or SVG file, which becomes part of the report.
    """

    title: str
    words: str
    picture: Path


def write_report(
    source: Source, path: str | Path, *, title: str = "CrashBO report", extras: Sequence[Extra] = ()
) -> Path:
    """Write a report of a run as one HTML file: summary, interactive pictures, all trials, and how to repeat it.

    The file needs no network and no other file, and its content security policy allows only its own scripts.
    It is written completely or not at all.

    Args:
        source: an optimizer, a result of `minimize`, or a `crashbo.show.View`, which adds units and
            trial numbers.
        path: path of the file; missing folders are created.
        title: title of the page.
        extras: your own pictures, shown after those of the model.

    Returns:
        The path of the file.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"`path` must be a file; {target} is a folder. Say a file in it.")
    whole = render_report(source, title=title, extras=extras)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(whole, encoding="utf-8")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return target


def render_report(
    source: Source,
    *,
    title: str = "CrashBO report",
    extras: Sequence[Extra] = (),
    when: datetime | None = None,
) -> str:
    """Return the report as HTML; see `write_report`.

    Args:
        source: see `write_report`.
        title: see `write_report`.
        extras: see `write_report`.
        when: the time shown in the report; None: now.
    """
    seen = view(source)
    weights = importance(seen) if seen.has_model else None
    drawn = [page.picture_section(number, one) for number, one in enumerate(sections(seen, weights))]
    stamp = (when or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    body = "".join(
        [
            _header(title, stamp),
            _overview(seen, weights),
            *drawn,
            *(page.image_section(one.title, one.words, one.picture) for one in extras),
            trials_section(seen),
            _repeat(seen),
        ]
    )
    scripts = [page.asset(_DRAWING).replace("</script", "<\\/script"), page.asset("report.js")]
    return page.assemble(title=title, body=body, palette=_palette(), scripts=scripts)


def _header(title: str, stamp: str) -> str:
    made = f"Made with CrashBO {crashbo.__version__}, {stamp}."
    return (
        f"<header><div><h1>{page.text(title)}</h1><p class='muted'>{made}</p></div>"
        "<button type='button' id='theme' class='quiet'>Dark or light</button></header>"
    )


def _overview(view: View, weights: Importance | None) -> str:
    cards = [f"<div class='card wide'><h2>In words</h2>{page.paragraphs(summary.sentences(view, weights))}</div>"]
    if view.trials:
        cards += [_best_card(view), _limits_card(view)]
    if view.has_model:
        words = summary.next_sentence(view, view.decision.suggestion)
        cards.append(f"<div class='card'><h2>Next</h2>{page.paragraphs([words])}</div>")
    return f"<section class='cards'>{''.join(cards)}</section>"


def _best_card(view: View) -> str:
    best = view.best
    rows = tuple((name, summary.with_unit(view, name, value)) for name, value in best.params.items())
    unit = view.units.get(OBJECTIVE, "")
    cost = f"{summary.number(best.mean)} ± {summary.number(best.std, 2)} {unit}".strip()
    said = [f"Expected {view.objective} {cost}, success {best.success_probability:.1%}."]
    if not best.feasible:
        needed = 1 - view.optimizer.options.delta
        said.append(f"Nothing reaches the {needed:.0%} a best guess needs; this comes closest.")
    content = page.paragraphs(said) + page.table(summary.Table(("parameter", "value"), rows))
    return f"<div class='card'><h2>Best guess</h2>{content}</div>"


def _limits_card(view: View) -> str:
    found = summary.limits(view)
    if not found:
        content = "<p>No limit is known: none was given, and what failed does not tell one yet.</p>"
    else:
        rows = tuple(
            (
                one.label,
                one.words + (" (given)" if one.known else ""),
                summary.number(one.worst, 4),
            )
            for one in found
        )
        header = ("output", "limit", "worst without failure")
        content = page.table(summary.Table(header, rows))
    return f"<div class='card'><h2>Limits</h2>{content}</div>"


def _repeat(view: View) -> str:
    state = json.dumps(view.optimizer.to_json(), indent=1)
    return (
        "<section><h2>To repeat it</h2>"
        "<p>The same settings, seed and trials give the same suggestions on the same machine.</p>"
        f"{page.table(summary.space_table(view))}{page.table(summary.settings_table(view, _versions()))}"
        "<details><summary>The whole state</summary><p>Save it as <code>run.json</code>; "
        '<code>crashbo.Optimizer.load("run.json")</code> goes on where this stands.</p>'
        f"<pre>{page.text(state)}</pre></details></section>"
    )


def _versions() -> list[tuple[str, str]]:
    found = [("crashbo", crashbo.__version__), ("Python", platform.python_version())]
    for name in _VERSIONS:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found


def _palette() -> str:
    """Pairs of colours: light, and dark in its place, opaque and see-through."""
    names = ("background", "ink", "muted", "grid", "blue", "orange", "green", "vermilion", "purple")
    pairs = [(getattr(LIGHT, name), getattr(DARK, name)) for name in names]
    clear = [tuple(see_through(one, share) for one in pair) for pair in pairs for share in (0.22, 0.7)]
    return inert(json.dumps([*pairs, *clear]))

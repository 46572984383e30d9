"""From what a report says to one HTML page. Every piece of text is escaped here, and only here."""

import base64
import hashlib
import html
import mimetypes
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from crashbo.errors import InputError
from crashbo.show.report.pictures import Section
from crashbo.show.report.summary import Table


def text(value: str) -> str:
    """Text as HTML shows it."""
    return html.escape(value, quote=True)


def table(content: Table) -> str:
    """A plain table."""
    head = "".join(f"<th scope='col'>{text(one)}</th>" for one in content.header)
    rows = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in content.rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def paragraphs(lines: Sequence[str]) -> str:
    """A paragraph per sentence."""
    return "".join(f"<p>{text(one)}</p>" for one in lines)


def picture_section(number: int, section: Section) -> str:
    """A heading with its pictures; a chooser where there are several groups."""
    parts = [f"<section><h2>{text(section.title)}</h2><p class='muted'>{text(section.words)}</p>"]
    if section.trouble:
        parts.append(f"<p class='trouble'>{text(section.trouble)}</p>")
    if len(section.choices) > 1:
        options = "".join(f"<option value='{i}'>{text(one.name)}</option>" for i, one in enumerate(section.choices))
        parts.append(f"<label class='chooser'>Show <select data-chooser='{number}'>{options}</select></label>")
    for index, choice in enumerate(section.choices):
        hidden = " hidden" if index else ""
        layout = {1: " single", 2: " even", 4: " even"}.get(len(choice.pictures), "")
        parts.append(f"<div class='pictures{layout}' data-choice='{number}-{index}'{hidden}>")
        for place, picture in enumerate(choice.pictures):
            key = f"figure-{number}-{index}-{place}"
            parts.append(
                f"<div class='plot' data-figure='{key}' role='img' aria-label='{text(picture.label)}' "
                f"style='height:{picture.height}px'></div>"
                f"<script type='application/json' id='{key}'>{picture.figure}</script>"
            )
        parts.append(f"</div><p class='muted small' data-note='{number}-{index}'{hidden}>{text(choice.note)}</p>")
    return "".join(parts) + "</section>"


def image_section(title: str, words: str, picture: Path) -> str:
    """A heading with a picture from a file, which becomes part of the page."""
    kind = mimetypes.guess_type(picture.name)[0] or ""
    if not kind.startswith("image/"):
        raise InputError(f"`picture` must be an image file; got {picture.name}. Save it as PNG, GIF, JPEG or SVG.")
    content = base64.b64encode(picture.read_bytes()).decode()
    image = f"<img src='data:{kind};base64,{content}' alt='{text(title)}' style='max-width:100%'>"
    return f"<section><h2>{text(title)}</h2><p class='muted'>{text(words)}</p>{image}</section>"


def asset(name: str) -> str:
    """A file that belongs to the report."""
    return (files("crashbo.show.report") / "assets" / name).read_text(encoding="utf-8")


def digest(script: str) -> str:
    """What a content security policy calls a script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def assemble(*, title: str, body: str, palette: str, scripts: Sequence[str]) -> str:
    """The whole page. Its policy allows the given scripts and nothing else: no network, no other script.

    Args:
        title: plain text.
        body: HTML.
        palette: JSON, colours of the light theme and those that replace them in the dark.
        scripts: run in this order.
    """
    allowed = " ".join(f"'{digest(one)}'" for one in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return Template(asset("page.html")).substitute(
        title=text(title),
        policy=policy,
        style=asset("style.css"),
        body=body,
        palette=palette,
        scripts="".join(f"<script>{one}</script>" for one in scripts),
    )

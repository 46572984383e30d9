"""The page with all commands, from the commands themselves."""

import typer
from typer.core import TyperArgument

from crashbo.cli import app


def commands_page() -> str:
    """Every command with its arguments and options, as Markdown."""
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="crashbo")
    parts = [
        "# Command line, all options\n\nMade from the commands themselves; `crashbo COMMAND --help` prints the same. "
        "[The command line, by example](../command-line.md) shows how they work together."
    ]
    names = group.list_commands(context)
    parts.append("\n".join(f"* [`crashbo {name}`](#crashbo-{name}): {_first(group, context, name)}" for name in names))
    parts += [_command(group.get_command(context, name), name) for name in names]
    return "\n\n".join(parts) + "\n"


def _first(group: typer.core.TyperGroup, context: typer.Context, name: str) -> str:
    return (group.get_command(context, name).help or "").strip().split("\n")[0]


def _command(command: typer.core.TyperCommand, name: str) -> str:
    context = typer.Context(command, info_name=f"crashbo {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## crashbo {name}", f"```text\ncrashbo {name} {usage}\n```", _help(command.help or "")]
    rows = [_row(parameter, context) for parameter in command.params if not getattr(parameter, "hidden", False)]
    rows = [row for row in rows if row]
    if rows:
        parts.append("\n".join(["| option | what it does | default |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _help(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def _row(parameter: typer.core.TyperOption | TyperArgument, context: typer.Context) -> str:
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    name, words = record
    default = parameter.default
    shown = "" if default in (None, False, "", ()) or callable(default) else f"`{default}`"
    words = words.split("  [")[0].removesuffix("[required]").strip()
    cells = (f"`{name}`", words, shown)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

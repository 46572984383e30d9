"""The command that writes a study as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from crashbo.cli.console import is_storage
from crashbo.cli.options import JsonOption, StorageOption, StudyOption, print_json


def report(
    name: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="The study's name, or its file or storage URL.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Of the page.  [default: the study's name]")] = None,
    browser: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Write a study as one HTML file that opens anywhere: words, pictures, all trials, how to repeat it."""
    from crashbo.store.storage import find_place
    from crashbo.store.study import open_study

    if name is not None and is_storage(name):
        storage, name = name, None
    opened = open_study(find_place(storage, study or name))
    from crashbo.show.report import write_report
    from crashbo.show.views import View
    from crashbo.store.model import fitted

    optimizer, numbers = fitted(opened)
    pruned = [one.number for one in opened.records() if one.status == "pruned"]
    seen = View(optimizer, units=opened.definition.units, numbers=numbers, pruned=pruned)
    path = write_report(seen, out, title=title or f"Study {opened.place.study}")
    if json_output:
        print_json({"report": str(path), "trials": len(numbers)})
    else:
        typer.echo(f"Report: {path}")
    if browser:
        typer.launch(path.resolve().as_uri())

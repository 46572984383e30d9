"""A progress bar where a person watches: in a terminal, or in a notebook."""

import html
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def _in_terminal() -> bool:
    """Whether a person watches what is printed."""
    from rich.console import Console

    return Console(stderr=True).is_terminal


@contextmanager
def progress_bar(total: int, done: int, shown: bool | None) -> Iterator[Callable[[int, str], None]]:
    """Show a bar (`shown` None: in notebooks and terminals) and give what moves it: how many are done, a few words."""
    if shown is False or not (shown or in_notebook() or _in_terminal()):
        yield lambda done, words: None
    elif in_notebook():
        display: Any = importlib.import_module("IPython.display")
        handle = display.display(display.HTML(_bar(total, done, "trials")), display_id=True)
        yield lambda done, words: handle.update(display.HTML(_bar(total, done, words)))
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("trials", total=total, completed=done)
            yield lambda done, words: bar.update(task, completed=done, description=words)


def _bar(total: int, done: int, words: str) -> str:
    return (
        f'<div style="font-family:monospace"><progress value="{done}" max="{total}" style="width:20em"></progress> '
        f"{done}/{total} {html.escape(words)}</div>"
    )

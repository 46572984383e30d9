"""Outputs shown on pages are those of the code above them: `python docs/site/outputs.py` checks, `--write` renews them.

A block of Python is run; a block of text that follows it at once is what it printed. Blocks of a page share names.
Numbers with a decimal point may differ between machines; everything else may not.
"""

import argparse
import contextlib
import io
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1]
_BLOCKS = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n^```text\n(?P<shown>.*?)^```\n)?", re.S | re.M)


@dataclass(frozen=True)
class Ran:
    """A block of code that was run.

    Attributes:
        code: its text.
        shown: what the page says it prints; None if the page does not say.
        printed: what it printed.
    """

    code: str
    shown: str | None
    printed: str

    @property
    def is_right(self) -> bool:
        """Whether the page shows what the code printed."""
        return self.shown is None or words(self.shown) == words(self.printed)


def words(text: str) -> list[str]:
    """A text without its spacing and without numbers that may differ between machines."""
    text = re.sub(r"^Crashes are .*$", "Crashes are #", text, flags=re.M)  # the likeliest first: near ties may swap
    return re.sub(r"-?\d+(\.\d+)?e-?\d+|-?\d+\.\d+%?|\d+ ?%", "#", text).split()


def run_blocks(text: str, name: str) -> list[Ran]:
    """Run all Python of a page in an empty folder."""
    names: dict[str, object] = {"__name__": "__main__"}
    found = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for match in _BLOCKS.finditer(text):
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    exec(compile(match["code"], name, "exec"), names)
                found.append(Ran(match["code"], match["shown"], said.getvalue()))
        finally:
            os.chdir(before)
    return found


def renewed(text: str, ran: list[Ran]) -> str:
    """The page with what its code printed."""
    results = iter(ran)

    def renew(match: re.Match[str]) -> str:
        one = next(results)
        return match[0] if one.is_right else match[0].replace(f"```text\n{one.shown}", f"```text\n{one.printed}")

    return _BLOCKS.sub(renew, text)


def main() -> None:
    """Check or renew the outputs on pages."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="All with outputs, if none is named.")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    wrong = 0
    pages = chosen.pages or [page for page in sorted(DOCS.rglob("*.md")) if "```text" in page.read_text()]
    for page in pages:
        text = page.read_text()
        ran = run_blocks(text, page.name)
        for one in ran:
            if not one.is_right:
                wrong += 1
                print(f"{page}: shown\n{one.shown}printed\n{one.printed}")
        if chosen.write:
            page.write_text(renewed(text, ran))
    if wrong and not chosen.write:
        raise SystemExit(f"{wrong} outputs are outdated; renew them: python docs/site/outputs.py --write")


if __name__ == "__main__":
    main()

"""Outputs shown on pages are those of the code above them: `python docs/site/outputs.py` checks, `--write` renews them.

A block of Python is run; a block of text right after it is what it printed. Blocks of a page share names.
Numbers with a decimal point and percentages may differ a little between processors: by 0.05 or a fifth. Everything else
may not, so a page prints shares where counts of a run may differ, and rounds what it prints.
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
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?e-?\d+|-?\d+\.\d+%?|\d+ ?%")
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
        if self.shown is None:
            return True
        near = all(map(are_near, numbers(self.shown), numbers(self.printed)))
        return near and words(self.shown) == words(self.printed)


def words(text: str) -> list[str]:
    """A text without its spacing and without numbers that may differ between machines."""
    return _NUMBER.sub("#", _without_causes(text)).split()


def numbers(text: str) -> list[float]:
    """The numbers of a text that may differ between machines; percentages as shares."""
    found = [match[0] for match in _NUMBER.finditer(_without_causes(text))]
    return [float(one.rstrip("% ")) / (100 if one.endswith("%") else 1) for one in found]


def are_near(shown: float, printed: float) -> bool:
    """Whether two numbers may be the same on two machines."""
    return abs(shown - printed) <= 0.05 + 0.2 * abs(shown)


def _without_causes(text: str) -> str:
    return re.sub(r"^Crashes are .*$", "Crashes are #", text, flags=re.M)  # the likeliest first: near ties may swap


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
        return match[0].replace(f"```text\n{one.shown}", f"```text\n{one.printed}")

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

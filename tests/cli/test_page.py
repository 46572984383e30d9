"""Pages with commands show what the commands do."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Call

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "command-line.md"
PAGES = {PAGE: 10, DOCS / "how-to" / "resume.md": 5}  # with how many commands they show at least


def sessions(page: Path) -> list[tuple[str, str]]:
    """Every command of a page with the output shown."""
    text = "".join(re.findall(r"```console\n(.*?)```", page.read_text(), re.S))
    return [(found[1], found[2]) for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M)]


def words(text: str) -> list[str]:
    """A text without its spacing; numbers with a point may differ between machines, those without may not."""
    text = re.sub(r"^Crashes are .*$", "Crashes are #", text, flags=re.M)  # the likeliest first: near ties may swap
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+", "#", text)
    return re.sub(r"-?\d+\.\d+%?|(?<=± )\d+|─+", "#", text).split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_do_what_the_page_shows(page: Path, call: Call) -> None:
    shown = sessions(page)
    assert len(shown) >= PAGES[page]
    for command, output in shown:
        program, *args = shlex.split(command)
        assert program == "crashbo"
        ran = call(*args)
        assert ran.code == (2 if output.startswith("crashbo: ") else 0), command
        assert words(ran.out + ran.err) == words(output), command


def test_the_run_of_a_program_is_as_shown(call: Call, tmp_path: Path) -> None:
    found = re.search(r"```\n\$ (crashbo run .*)\n((?:.*\n)*?)```", PAGE.read_text())
    assert found
    for file in (DOCS.parent / "examples" / "run_any_program").iterdir():
        shutil.copy(file, tmp_path)
    ran = call(*shlex.split(found[1])[1:])
    assert ran.code == 0
    before, after = found[2].split("...\n")
    assert words(ran.err)[: len(words(before))] == words(before)  # trials are reported on stderr
    assert ran.err.splitlines()[-1].startswith(after.partition(":")[0])
    # Which trial is the best, and which of the last ones crash, is decided by nearly equal suggestions.
    said = re.compile(r"(\d+) trials finished, (\d+) crashed\.\n(.*)Best trial: \d+, (\S+)\n", re.S)
    now, shown = said.search(ran.out), said.search(after)
    assert now
    assert shown
    assert int(now[1]) + int(now[2]) == 20
    assert 2 <= int(now[2]) <= 6
    assert float(now[4]) < 0.01
    assert words(now[3]) == words(shown[3])


def test_the_space_of_the_page_is_one(call: Call, tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.S)
    assert found
    (tmp_path / "space.yaml").write_text(found[1])
    made = call("new", "--space", "space.yaml", "--json").json
    assert list(made["parameters"]) == ["kp", "kd", "order", "filter"]
    assert made["constraints"] == {"reach": None, "temp": 80}

"""The command `crashbo console`."""

import builtins
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crashbo.cli import app
from crashbo.cli.console import is_storage
from crashbo.console.security import make_policy
from crashbo.console.server import Address, is_open, link
from crashbo.errors import InputError
from crashbo.store.storage import StudyError
from crashbo.store.study import Study


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["console", *words])


def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be served; nothing is."""
    found: list[Any] = []

    def serve(study: Study, address: Address, *, announce: Any) -> None:
        found.extend([study.place, address])
        announce("http://127.0.0.1:8765/")

    monkeypatch.setattr("crashbo.console.server.serve", serve)
    return found


@pytest.mark.parametrize(
    ("text", "storage"),
    [("study.db", True), ("a/b", True), ("postgresql://host/db", True), ("log.journal", True), ("arm", False)],
)
def test_a_file_is_told_from_a_name(text: str, storage: bool) -> None:
    assert is_storage(text) == storage


def test_a_study_is_named_by_its_file_or_its_name(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    found = served(monkeypatch)
    file = str(study.place.file)
    for words in ([file], ["arm", "--storage", file], ["--storage", file, "--study", "arm"]):
        result = run(*words)
        assert result.exit_code == 0, result.output
        assert "Console of study 'arm'" in result.output
        assert "not encrypted" not in result.output
    assert [place.study for place in found[::2]] == ["arm"] * 3
    assert {address.host for address in found[1::2]} == {"127.0.0.1"}


def test_an_open_address_comes_with_a_warning(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    served(monkeypatch)
    assert "Anyone with this link can write" in run(str(study.place.file), "--host", "0.0.0.0").output


def test_a_study_that_is_not_there_is_explained(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="crashbo new"):
        raise run(str(tmp_path / "nothing.db")).exception


def test_missing_packages_are_named(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def broken(name: str, *details: Any, **others: Any) -> Any:
        if name == "crashbo.console.server":
            raise ImportError("No module named 'starlette'")
        return usual(name, *details, **others)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(InputError, match=r"pip install 'crashbo\[console\]'"):
        raise run(str(study.place.file)).exception


def test_the_link_keeps_a_strange_token_whole() -> None:
    policy = make_policy("0.0.0.0", 8765, token="sixteen/letters#&é")
    assert link(policy, "192.168.1.5") == "http://192.168.1.5:8765/#token=sixteen%2Fletters%23%26%C3%A9"
    assert link(make_policy("::1", 80, without_token=True), "::1", "https") == "https://[::1]:80/"
    assert is_open(Address(host="192.168.1.5"))
    assert not is_open(Address())


def test_neither_help_nor_the_server_imports_torch() -> None:
    code = "import sys, crashbo.cli, crashbo.console.server; print('torch' in sys.modules, 'botorch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]

"""Where studies are."""

import importlib.util
from pathlib import Path

import pytest

from crashbo.store import storage
from crashbo.store.storage import Place, StudyError, find_place, hide_password, open_storage
from crashbo.store.study import open_study
from tests.processes import processes
from tests.store.helpers import make_study


@pytest.mark.parametrize(
    ("given", "url", "file"),
    [
        (None, "sqlite:///crashbo.db", "crashbo.db"),
        ("a/b.db", "sqlite:///a/b.db", "a/b.db"),
        ("/a/b.db", "sqlite:////a/b.db", "/a/b.db"),
        ("sqlite:////a/b.db?timeout=3", "sqlite:////a/b.db?timeout=3", "/a/b.db"),
        ("study.journal", "journal:///study.journal", "study.journal"),
        ("postgresql://me:pw@host/db", "postgresql://me:pw@host/db", None),
        ("sqlite:///:memory:", "sqlite:///:memory:", None),
    ],
)
def test_places(given: str | None, url: str, file: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRASHBO_STORAGE", raising=False)
    found = find_place(given)
    assert found.url == url
    assert found.file == (None if file is None else Path(file))
    assert "pw" not in f"{found} {found!r}"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("postgresql://me:pw@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql+psycopg://me:p@w/!@host/db is away", "postgresql+psycopg://me:***@host/db is away"),
        ("postgresql://host/db?user=me&password=pw&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("sqlite:///crashbo.db", "sqlite:///crashbo.db"),
        ("postgresql://host/db", "postgresql://host/db"),
    ],
)
def test_passwords_are_hidden(text: str, hidden: str) -> None:
    assert hide_password(text) == hidden


def test_the_driver_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    for missing, expected in (("psycopg2", "psycopg"), ("psycopg", "psycopg2")):
        present = {"psycopg": object(), "psycopg2": object(), missing: None}
        monkeypatch.setattr(storage.importlib.util, "find_spec", lambda name, here=present: here.get(name, real))
        assert storage._with_driver("postgresql://me@host/db") == f"postgresql+{expected}://me@host/db"
        assert storage._with_driver("postgres://me@host/db") == f"postgresql+{expected}://me@host/db"
        assert storage._with_driver("mysql://me@host/db") == "mysql://me@host/db"


def test_a_missing_driver_says_what_to_install() -> None:
    with pytest.raises(StudyError, match=r"needs a database driver. For PostgreSQL: pip install 'crashbo\[postgres\]'"):
        open_storage(Place("mysql+pymysql://me:pw@host/db"))


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="There is no folder"):
        open_storage(find_place(str(tmp_path / "nowhere" / "crashbo.db")), create=True)


def take(url: str, taken: Path) -> None:
    """Take trials from the queue until there is none."""
    study = open_study(Place(url, "crashbo"))
    while (number := study.inner.ask().number) < 20:
        with taken.open("a") as log:
            log.write(f"{number}\n")


def test_no_two_processes_take_the_same_trial_from_a_file(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    for n in range(20):
        study.inner.enqueue_trial({"x": n / 20})
    taken = tmp_path / "taken"
    workers = [processes().Process(target=take, args=(study.place.url, taken)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
        assert worker.exitcode == 0
    assert sorted(map(int, taken.read_text().split())) == list(range(20))

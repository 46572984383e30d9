"""Four workers begin at the same moment and one is killed, as in the tutorial: nothing is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crashbo.store.workers import is_gone, this_machine
from tests.examples import EXAMPLES, small_copy
from tests.processes import wait_until

QUICK_FIT = """
import sys, time
C, gamma = map(float, sys.argv[1:])
time.sleep(0.5)  # so that a worker can be killed in the middle of a trial
if C * gamma > 100:
    sys.exit("did not converge")
print((C * gamma - 1) ** 2)
"""


def test_the_fit_of_the_example_prints_its_error() -> None:
    pytest.importorskip("sklearn", reason="needs the extra examples")
    command = [sys.executable, str(EXAMPLES / "svc" / "fit.py"), "1.0", "0.01"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert 0 < float(done.stdout) < 0.1, done.stderr


def test_four_workers_share_a_database_and_one_dies(postgres: str, tmp_path: Path) -> None:
    example = small_copy("postgres_workers.py", tmp_path)
    (tmp_path / "svc" / "fit.py").write_text(QUICK_FIT)
    database = _make_database(postgres, "tutorial")
    done = subprocess.run(
        [sys.executable, str(example)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"CRASHBO_STORAGE": database},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Best guess" in done.stdout
    trials, different = done.stdout.split("\n")[-2].split(" trials, ")
    assert int(trials) >= 6
    assert int(different.split()[0]) >= 6


def test_who_opens_an_empty_database_at_the_same_moment_finds_or_makes_its_tables(postgres: str) -> None:
    url = _make_database(postgres, "empty")
    code = f"from crashbo.store.storage import Place, open_storage; open_storage(Place({url!r}), create=True)"
    opening = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in opening:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said


def test_a_killed_process_that_nobody_waited_for_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    worker = {"machine": this_machine(), "pid": process.pid, "started": None}
    assert is_gone(worker) is (False if this_machine() else None)
    process.kill()
    wait_until(lambda: is_gone(worker) is not False)  # not `wait`, which would take it away
    assert is_gone(worker) is (True if this_machine() else None)
    process.wait()


def _make_database(url: str, name: str) -> str:
    """An empty database of its own on the server that all tests share; its URL."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.removesuffix("/postgres") + f"/{name}"

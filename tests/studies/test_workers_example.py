"""The tutorial on four workers: one is killed, and nothing is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import small_copy


def test_four_workers_share_a_database_and_one_dies(postgres: str, tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="needs the extra examples")
    example = small_copy("postgres_workers.py", tmp_path)
    database = _make_database(postgres)
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
    ended, different = done.stdout.split("\n")[-2].split(" trials ended, ")
    assert int(ended) >= 6
    assert int(different.split()[0]) >= 6


def _make_database(url: str) -> str:
    """An empty database of its own on the server that all tests share; its URL."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE tutorial")
    return url.removesuffix("/postgres") + "/tutorial"

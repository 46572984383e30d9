"""Fixtures: a study, and a PostgreSQL server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crashbo.store.study import Study
from tests.store.helpers import make_study
from tests.store.server import MISSING, Server, find_binaries, running_server


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return make_study(tmp_path, constraints={"reach": None, "temp": 80})


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server that tests may stop, if they start it again."""
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(MISSING)
    with running_server(binaries) as running:
        yield running


@pytest.fixture(scope="session")
def postgres(server: Server) -> str:
    """The URL, password included, of a PostgreSQL server."""
    return server.url

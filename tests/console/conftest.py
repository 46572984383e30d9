"""A study, and a console that serves it with a quick stand-in for the model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crashbo.store.study import Study
from tests.console.helpers import Client, QuickModel, make_study


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Consoles look for news of other processes more often."""
    hub = pytest.importorskip("crashbo.console.hub")
    monkeypatch.setattr(hub, "BUSY_SECONDS", 0.1)
    monkeypatch.setattr(hub, "IDLE_SECONDS", 0.1)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """An empty study."""
    return make_study(tmp_path)


@pytest.fixture
def client(study: Study) -> Iterator[Client]:
    """A client of a console on the study."""
    from crashbo.console.server import serving

    with serving(study, model=QuickModel(study)) as url:
        yield Client(url).login()

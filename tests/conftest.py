"""Settings for all tests."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.fragile import perturb

settings.register_profile("crashbo", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("crashbo")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this suite."""
    group = parser.getgroup("crashbo")
    group.addoption(
        "--perturb", type=int, metavar="SEED", help="Compute covariances as another processor might: with 1e-13 noise."
    )
    group.addoption("--perturb-size", type=float, default=perturb.SIZE, metavar="SIZE", help="Another size of it.")


def pytest_configure(config: pytest.Config) -> None:
    """Perturb; processes of pytest-xdist are perturbed from their start."""
    seed = config.getoption("--perturb")
    if seed is not None and perturb.SEED not in os.environ:
        perturb.install(seed, config.getoption("--perturb-size"))


@pytest.fixture(autouse=True, scope="session")
def _interrupts_are_heard() -> Iterator[None]:
    """A shell starts `pytest &` with Ctrl-C ignored; what tests interrupt is to hear it all the same."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)

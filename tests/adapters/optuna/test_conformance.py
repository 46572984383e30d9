"""Optuna's own conformance tests of a sampler."""

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from crashbo import Options
from crashbo.adapters.optuna import CrashBOSampler


class TestCrashBOSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """All of it, with a light search: what is tested here is the interface."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: CrashBOSampler(seed=0, options=Options(initial=8, raw=32))


@pytest.mark.slow
class TestDefaultSampler(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """All of it as users get it."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return CrashBOSampler

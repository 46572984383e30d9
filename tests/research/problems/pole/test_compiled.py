"""Compiled where numba is, as it is where not."""

import importlib.util
import sys
from types import ModuleType

import pytest

from crashbo.research.problems.pole import compiled as installed


def load(monkeypatch: pytest.MonkeyPatch, numba: ModuleType | None) -> ModuleType:
    """The module as it would be with this numba, None for no numba at all."""
    monkeypatch.setitem(sys.modules, "numba", numba)
    spec = importlib.util.spec_from_file_location("fresh_compiled", installed.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def double(value: float) -> float:
    return 2 * value


def test_without_numba_a_function_stays_as_it_is(monkeypatch):
    module = load(monkeypatch, None)
    assert not module.COMPILED
    assert module.compiled(double) is double


def test_without_a_place_for_the_cache_it_compiles_anew(monkeypatch):
    calls = []

    def njit(function=None, *, cache=False):
        calls.append(cache)
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return ("compiled", function)

    fake = ModuleType("numba")
    fake.njit = njit  # type: ignore[attr-defined]
    module = load(monkeypatch, fake)
    assert module.compiled(double) == ("compiled", double)
    assert calls == [True, False]


def test_with_numba_it_compiles():
    pytest.importorskip("numba")
    assert installed.COMPILED
    assert installed.compiled(double)(2.0) == 4.0

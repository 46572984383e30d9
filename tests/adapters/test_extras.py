"""Without its extra an integration says what to install."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("adapter", "package", "first_import"),
    [("ax", "Ax", "ax.core.base_trial"), ("ray", "Ray Tune", "ray.tune.search")],
)
def test_a_missing_extra_is_named(
    adapter: str, package: str, first_import: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, first_import, None)
    monkeypatch.delitem(sys.modules, f"crashbo.adapters.{adapter}", raising=False)
    with pytest.raises(ImportError, match=rf"needs {package}.*pip install 'crashbo\[{adapter}\]'"):
        importlib.import_module(f"crashbo.adapters.{adapter}")

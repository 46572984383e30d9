"""Without the extra `botorch` everything but its names works, and these say what to install."""

import subprocess
import sys

import pytest

import crashbo

NAMES = ["GPCR", "fit_gpcr", "CostAndMargin", "make_kernel", "check_ep"]
WITHOUT = """
import importlib.util, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "gpytorch", "botorch", "linear_operator"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "botorch" else find(name, package)
import crashbo
"""


def run(code: str) -> str:
    """What code prints where torch is not installed."""
    done = subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_without_the_extra_a_name_says_what_to_install(name: str) -> None:
    said = run(f"""
try:
    crashbo.{name}
except ImportError as error:
    assert isinstance(error, crashbo.CrashBOError)
    print(error)
""")
    expected = f'`crashbo.{name}` needs BoTorch, which is not installed; run: pip install "crashbo[botorch]"'
    assert said.strip() == expected


def test_without_the_extra_a_run_needs_no_torch() -> None:
    said = run("""
from crashbo import *
result = minimize(lambda p: (p["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, n_trials=6, seed=0)
print(len(result.trials), "torch" in sys.modules, "GPCR" in dir(crashbo))
""")
    assert said.split() == ["6", "False", "True"]


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'gpcr'"):
        crashbo.gpcr  # noqa: B018


def test_with_the_extra_all_names_are_there() -> None:
    pytest.importorskip("botorch")
    assert set(NAMES) <= set(crashbo.__all__)
    assert all(callable(getattr(crashbo, name)) for name in NAMES)

"""Modules under their public names, and under those of version 0.2: one and the same module each time."""

import importlib
import subprocess
import sys

import pytest

import crashbo

PUBLIC = {
    "crashbo.integrations": "crashbo.adapters",
    "crashbo.integrations.optuna": "crashbo.adapters.optuna",
    "crashbo.plots": "crashbo.show",
    "crashbo.plots.interactive": "crashbo.show.interactive",
    "crashbo.problems": "crashbo.research.problems",
    "crashbo.problems.pole": "crashbo.research.problems.pole",
    "crashbo.report": "crashbo.show.report",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_the_module_itself(name: str) -> None:
    module = importlib.import_module(PUBLIC[name])
    assert importlib.import_module(name) is module
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == PUBLIC[name]


def test_a_former_name_warns_and_is_the_module_itself() -> None:
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    from crashbo.gp.ep import propagate\n"
        "    from crashbo.space import Space\n"
        "import crashbo, crashbo.model.ep\n"
        "assert propagate is crashbo.model.ep.propagate and Space is crashbo.Space\n"
        "print(*(one.message for one in said), sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "`crashbo.gp.ep` is `crashbo.model.ep` now." in done.stdout
    assert "`crashbo.space` is `crashbo.problem.space` now." in done.stdout


def test_a_name_that_never_was_is_refused() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("crashbo.nothing")


def test_what_a_layer_uses_of_a_later_one_is_there() -> None:
    assert all(callable(crashbo.later(name)) for name in crashbo._LATER)

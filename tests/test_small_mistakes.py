"""Small mistakes: one clear line each."""

from typing import Any

import pytest

from crashbo import Constraint, InputError, Optimizer, Options, Result, minimize
from crashbo.show import interactive, plot_convergence, plot_maps, plot_pairs
from crashbo.show.report import write_report
from crashbo.store.files import read_definition

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


@pytest.fixture(scope="module")
def result() -> Result:
    return minimize(lambda params: params["x"], SQUARE, n_trials=3, initial=9)


def said(call: Any) -> str:
    with pytest.raises(InputError) as found:
        call()
    assert "\n" not in str(found.value)
    return str(found.value)


def test_fixed_hyperparameters_that_are_none():
    assert said(lambda: Options(fixed={"objective": 1})) == (
        "`fixed` must map outputs to crashbo.FixedModel; got {'objective': 1}."
    )


@pytest.mark.parametrize("draw", [plot_maps, interactive.plot_maps])
@pytest.mark.parametrize("quantities", [("foo",), (), "mean", ("mean", "foo")])
def test_maps_of_what_there_is_not(result, draw, quantities):
    words = "`quantities` must be some of truth, mean, std, success, acquisition, unconstrained; got"
    assert words in said(lambda: draw(result, quantities=quantities))


def test_pairs_of_what_there_is_not(result):
    assert "`quantities` must be some of" in said(lambda: plot_pairs(result, quantity="foo"))


@pytest.mark.parametrize("draw", [plot_convergence, interactive.plot_convergence])
def test_convergence_of_nothing(draw):
    assert said(lambda: draw({})) == "`source` must hold runs by method name; got none. Give a run, or several."


def test_a_constraint_may_be_a_name_alone_and_must_not_be_that_of_a_parameter():
    assert Optimizer(SQUARE, constraints=["g"]).constraints == (Constraint("g"),)
    words = "`x` must name either a parameter or a constraint; got both. Rename one."
    assert said(lambda: Optimizer(SQUARE, constraints=["x"])) == words
    assert said(lambda: minimize(lambda p: 0.0, SQUARE, n_trials=1, constraints=[Constraint("x")])) == words


def test_folders_where_files_are_meant(result, tmp_path):
    assert "is a folder. Say a file in it." in said(lambda: Optimizer.load(tmp_path))
    assert "is a folder. Say a file in it." in said(lambda: result.optimizer.save(tmp_path))
    assert "is a folder. Say a file in it." in said(lambda: write_report(result, tmp_path))
    assert "is a folder. Say a file in it." in said(lambda: read_definition(tmp_path))
    assert "is a folder. Say a file in it." in said(lambda: minimize(lambda p: 0.0, SQUARE, n_trials=1, state=tmp_path))
    assert list(tmp_path.iterdir()) == []

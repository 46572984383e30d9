"""Plots draw what the model says."""

import pytest

import crashbo
from crashbo.plots import plot_posterior, plot_predictive

torch = pytest.importorskip("torch", reason="needs the extra botorch")


@pytest.fixture
def model() -> "crashbo.GPCR":
    X = torch.tensor([[1.0], [3.0], [5.0], [7.0], [9.0]])
    Y = torch.tensor([[0.5], [2.0], [1.0], [0.0], [0.0]])
    crashed = torch.tensor([False, False, False, True, True])
    return crashbo.GPCR(X, Y, crashed, bounds=torch.tensor([[0.0], [10.0]]))


def test_the_posterior_spans_the_domain_and_marks_every_trial(model: "crashbo.GPCR") -> None:
    top, bottom = plot_posterior(model, name="gain").axes
    assert bottom.get_xlabel() == "gain"
    assert bottom.get_xlim() == (0.0, 10.0)
    drawn = {line.get_label(): len(line.get_xdata()) for line in top.lines}
    assert drawn["stable trials"] == 3
    assert drawn["crashed trials (cost unknown)"] == 2


def test_the_predictive_comparison_has_both_curves(model: "crashbo.GPCR") -> None:
    (axes,) = plot_predictive(model, points=20, values=40).axes
    labels = {line.get_label() for line in axes.lines}
    assert {"p(f*), mode", "q(f*), mean"} <= labels


def test_two_inputs_are_refused() -> None:
    model = crashbo.GPCR(torch.rand(4, 2), torch.rand(4, 1), torch.zeros(4).bool())
    with pytest.raises(crashbo.InputError, match="`model` must have one input"):
        plot_posterior(model)

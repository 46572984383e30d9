"""Methods of the suite: one interface, crashes included."""

import pytest
from benchmarks.suite.methods import installed, make_method, method_names
from benchmarks.suite.problems import problems

from crashbo.errors import InputError

# One of each way to work; the others differ in a setting.
DISTINCT = ("crashbo", "tpe-pruned", "gpsampler-worst", "logei-worst", "logei-classifier", "ax-viability", "smac-worst")
EACH = (*DISTINCT, "fcei-0.5", "boundary-ensemble", "vizier-infeasible")


def make(name, problem, seed):
    """The method, or a skipped test."""
    if not installed(name):
        pytest.skip(f"{name} is not installed")
    return make_method(name, problem, seed)


OFTEN = [pytest.param(name, marks=() if name in DISTINCT else pytest.mark.slow) for name in EACH]
ALL = [pytest.param(name, marks=() if name in EACH else pytest.mark.slow) for name in method_names()]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("ignore")  # what peers warn of is their business
def test_method_asks_and_tells_with_crashes(name):
    problem = problems()["disks"]
    method = make(name, problem, 0)
    for trial, params in enumerate(problem.design(0)):
        method.tell(params, None if trial % 3 == 0 else float(trial))
    for cost in (1.5, None, 0.5, None):
        params = method.ask()
        assert problem.space.validate(params) == dict(params)
        assert method.success_probability is None or 0 <= method.success_probability <= 1
        method.tell(params, cost)


@pytest.mark.parametrize("name", OFTEN)
@pytest.mark.filterwarnings("ignore")
def test_method_asks_for_choices(name):
    problem = problems()["machine"]
    method = make(name, problem, 0)
    for trial, params in enumerate(problem.design(0)):
        method.tell(params, None if trial % 3 == 0 else float(trial))
    params = method.ask()
    assert problem.space.validate(params) == dict(params)
    method.tell(params, None)


@pytest.mark.parametrize("name", OFTEN)
@pytest.mark.filterwarnings("ignore")
def test_method_goes_on_when_everything_crashed(name):
    problem = problems()["corners"]
    method = make(name, problem, 1)
    for params in problem.design(1):
        method.tell(params, None)
    tried = [dict(params) for params in problem.design(1)]
    params = method.ask()
    assert dict(params) not in tried
    method.tell(params, 1.0)
    assert problem.space.validate(method.ask())


def test_same_seed_same_suggestions():
    for name in ("random", "tpe-failed", "logei-worst"):
        problem, first = problems()["corners"], []
        for _ in range(2):
            method = make_method(name, problem, 2)
            for trial, params in enumerate(problem.design(2)):
                method.tell(params, None if trial == 1 else float(trial))
            first.append(dict(method.ask()))
        assert first[0] == first[1], name


def test_unknown_method_is_refused():
    with pytest.raises(InputError, match="`method` must be one of crashbo, "):
        make_method("best", problems()["corners"], 0)


def test_classifier_keeps_its_lengthscales_within_their_bounds():
    torch = pytest.importorskip("torch", reason="needs the extra botorch")
    from benchmarks.suite.methods.botorch_ import _fit_classifier, _respect_bounds

    X = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = _fit_classifier(X, torch.arange(6) % 2 == 0)
    kernel = model.model.covar_module
    kernel.raw_lengthscale.data = torch.tensor([[-0.1, 0.4]], dtype=torch.float64)  # as a step of Adam may leave it
    _respect_bounds(model)
    assert kernel.lengthscale.detach().tolist()[0] == pytest.approx([0.025, 0.4])

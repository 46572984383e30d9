"""Drawn problems: the same for the same number, as mixed as they claim, with optima that hold."""

import math

import numpy as np
import pytest
from benchmarks.suite.draws import BUDGET, draw, draw_name, draw_number, optimum
from benchmarks.suite.draws.fields import gp_draw, standardised
from benchmarks.suite.draws.landscape import make_landscape
from benchmarks.suite.draws.margins import correlated
from benchmarks.suite.draws.optimum import find_optimum, search_and_store, stored_optima
from benchmarks.suite.draws.recipes import COSTS, DIMENSIONS, RELATIONS, SHAPES, recipe
from benchmarks.suite.draws.shapes import make_shape
from benchmarks.suite.problems import find_problem

from crashbo.errors import InputError
from crashbo.problem.space import Categorical, Float, Int

RECIPES = [recipe(number) for number in range(200)]
ROLES = [*range(150), *range(1000, 1150), *range(10000, 10200)]


def rows(landscape, count=2000, seed=0):
    """Values spread evenly over the space."""
    return landscape.axes.rows(np.random.default_rng(seed).random((count, landscape.recipe.dimension)))


def test_every_ingredient_occurs():
    assert {one.dimension for one in RECIPES} == set(DIMENSIONS) == set(range(1, 9))
    assert {one.cost for one in RECIPES} == set(COSTS)
    assert {one.shape for one in RECIPES} == set(SHAPES)
    assert {one.relation for one in RECIPES} == set(RELATIONS)
    shares = [one.share for one in RECIPES]
    assert 0.05 <= min(shares) < 0.1
    assert 0.75 < max(shares) <= 0.8
    correlations = {one.correlation for one in RECIPES}
    assert {None, 1.0, 0.0, -0.7} < correlations
    assert all(one is None or -0.9 <= one <= 1 for one in correlations)


def test_shares_of_noise_random_crashes_and_discrete_parameters():
    noises = [one.noise for one in RECIPES if one.noise]
    rates = [one.crash_rate for one in RECIPES if one.crash_rate]
    assert len(noises) / 200 == pytest.approx(0.25, abs=0.07)
    assert len(rates) / 200 == pytest.approx(0.15, abs=0.06)
    assert sum(one.discrete for one in RECIPES) / 200 == pytest.approx(0.2, abs=0.07)
    assert 0.001 <= min(noises) <= max(noises) <= 0.05
    assert 0.05 <= min(rates) <= max(rates) <= 0.25


def test_discrete_draws_have_integers_choices_and_log_scales():
    spaces = [make_landscape(one.number).axes.space for one in RECIPES[:60] if one.discrete]
    kinds = [parameter for space in spaces for parameter in space.values()]
    assert any(isinstance(one, Int) for one in kinds)
    assert any(isinstance(one, Categorical) for one in kinds)
    assert any(isinstance(one, Float) and one.log for one in kinds)
    assert all(any(isinstance(one, Float) for one in space.values()) for space in spaces)
    assert all(sum(isinstance(one, Categorical) for one in space.values()) <= 1 for space in spaces)


def test_optima_lie_inside_and_on_the_edges():
    at_limit = at_bound = inside = 0
    for number in range(40):
        landscape = make_landscape(number)
        point = landscape.axes.points(np.array([stored_optima()[number][1]]))
        limit = bool(landscape.margins(point).max() > landscape.limit - 1e-6)
        bound = bool((np.minimum(point, 1 - point) < 1e-6).any())
        at_limit, at_bound, inside = at_limit + limit, at_bound + bound, inside + (not limit and not bound)
    assert min(at_limit, at_bound, inside) >= 5


def test_same_number_same_problem():
    draw.cache_clear()
    first = draw(5)
    draw.cache_clear()
    second = draw(5)
    params = first.space.sample(50, np.random.default_rng(0))
    assert first.space == second.space
    assert first.optimum == second.optimum
    assert [first.run(one, 5, 1) for one in params] == [second.run(one, 5, 1) for one in params]
    assert draw(6).space != first.space or draw(6).optimum != first.optimum


@pytest.mark.parametrize("number", [0, 1, 4, 9, 1000, 10000])
def test_share_that_crashes_is_as_drawn(number):
    landscape = make_landscape(number)
    succeeds = landscape.truth(rows(landscape))[1]
    assert 1 - succeeds.mean() == pytest.approx(landscape.recipe.share, abs=0.04)


@pytest.mark.parametrize("wanted", [-0.7, 0.0, 0.6, 1.0])
def test_margin_has_the_correlation_asked_for(wanted):
    rng = np.random.default_rng(0)
    points = rng.random((500, 2))
    cost = standardised(gp_draw(2, 0.3, rng), points)
    margin = correlated(cost, wanted, points, rng)
    assert np.corrcoef(cost(points), margin(points))[0, 1] == pytest.approx(wanted, abs=1e-9)
    assert margin(points).std() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_never_decrease_and_keep_the_lowest(kind):
    values = np.sort(np.random.default_rng(0).standard_normal(1000))
    shaped = make_shape(kind, values, np.random.default_rng(1))(values)
    assert (np.diff(shaped) >= 0).all()
    assert (np.diff(shaped[:90]) > 0).all()


def test_gp_draw_has_the_kernel_it_claims():
    """Over many draws: variance 1, covariance exp(-r^2 / 2) or Matern 5/2 at one lengthscale, between the two."""
    U = np.array([[0.0], [0.3]])
    values = np.array([gp_draw(1, 0.3, np.random.default_rng(seed))(U) for seed in range(3000)])
    assert (values**2).mean() == pytest.approx(1.0, abs=0.08)
    assert (values[:, 0] * values[:, 1]).mean() == pytest.approx(0.55, abs=0.08)


@pytest.mark.parametrize("number", ROLES[::25])
def test_stored_optimum_is_reached_where_trials_succeed(number):
    problem = draw(number)
    value, succeeds = problem.truth(np.array([problem.minimiser]))
    assert succeeds[0]
    assert value[0] == pytest.approx(problem.optimum, rel=1e-9)


def test_all_draws_in_use_are_stored():
    assert set(ROLES) <= set(stored_optima())


@pytest.mark.parametrize("number", [0, 3, 11, 1007, 10013])
def test_optimum_is_not_beaten_by_another_search(number):
    landscape, problem = make_landscape(number), draw(number)
    value, _ = find_optimum(landscape, seed=7, points=15)
    assert value >= problem.optimum - 1e-6 * landscape.spread
    costs, succeeds = problem.truth(rows(landscape, 20000, seed=8))
    assert costs[succeeds].min(initial=math.inf) >= problem.optimum


@pytest.mark.parametrize("number", range(12))
def test_rows_and_params_mean_the_same(number):
    landscape, problem = make_landscape(number), draw(number)
    for params in problem.space.sample(5, np.random.default_rng(number)):
        row = problem.row(params)[None]
        points = landscape.axes.points(row)
        assert ((points >= 0) & (points <= 1)).all()
        cost, succeeds = problem.truth(row)
        outcome = problem.run(params, number, 1)
        assert outcome.value == (cost[0] if outcome.cost is not None else math.inf)
        assert succeeds[0] or outcome.cost is None
    best = landscape.axes.space.validate(
        {
            name: one.choices[int(value)] if isinstance(one, Categorical) else value
            for (name, one), value in zip(problem.space.items(), problem.minimiser, strict=True)
        }
    )
    assert problem.row(best) == pytest.approx(problem.minimiser)


def test_names():
    assert draw_name(12) == "draw-12"
    assert draw_number("draw-12") == 12
    assert draw_number("draw-x") is draw_number("disks") is None
    assert find_problem("draw-12") is draw(12)
    assert draw(12).budget == BUDGET == 50
    with pytest.raises(InputError, match="`number` must not be negative"):
        draw(-1)


def test_optimum_of_an_older_version_is_refused(monkeypatch):
    draw.cache_clear()
    monkeypatch.setattr("benchmarks.suite.draws.stored_optima", lambda: {2: (0.0, (0.5,) * recipe(2).dimension)})
    with pytest.raises(InputError, match="optima --draws 2"):
        draw(2)


def test_search_writes_the_file(tmp_path, monkeypatch):
    known = stored_optima()[4]
    monkeypatch.setattr(optimum, "FILE", tmp_path / "optima.json")
    stored_optima.cache_clear()
    try:
        ((number, before, value),) = search_and_store([4])
        assert (number, before) == (4, None)
        assert value == pytest.approx(known[0])
        assert stored_optima() == {4: (value, stored_optima()[4][1])}
        assert next(iter(search_and_store([4], seed=1)))[1] == value
    finally:
        stored_optima.cache_clear()

"""How careful the search is, and what it shows of itself."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from crashbo import CRASHED, VIOLATED, Constraint, Float, Optimizer, Options, Space
from crashbo.acquisition.entropy import MinValueEntropySearch
from crashbo.acquisition.failures import FailureAware
from crashbo.errors import InputError
from crashbo.models.surrogates import FixedModel
from crashbo.optimizer import AcquisitionName
from crashbo.search import Caution, _likely

SQUARE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
WORKS, FAILS = False, True


def test_caution_grows_with_recent_failures() -> None:
    options = Options(risk=0.2)
    assert options.caution([]) == Caution(settled=0.9)
    assert options.caution([FAILS] + [WORKS] * 9) == Caution(1, 0.0, settled=0.9, escape=0.5)
    floors = [options.caution([WORKS] * 5 + [FAILS] * count).floor for count in (2, 3, 4, 5)]
    assert floors == pytest.approx([0.8, 0.95, 0.9875, 0.996875])
    assert options.caution([FAILS] * 9 + [WORKS] * 10) == options.caution([])


def test_failures_before_the_first_success_do_not_count() -> None:
    calm = Caution(settled=0.9)
    assert Options().caution([FAILS] * 8 + [WORKS], start=8) == calm
    optimizer = Optimizer(SQUARE, seed=0, options=Options(crashes="separate"))
    for point in SQUARE.sobol(6, 3):
        optimizer.tell(point, CRASHED)
    optimizer.tell({"x": 0.5, "y": 0.5}, 1.0)
    assert optimizer.search().caution == calm
    optimizer.tell({"x": 0.6, "y": 0.5}, CRASHED)
    assert optimizer.search().caution == Caution(1, 0.0, settled=0.9, escape=0.5)


def test_failures_among_the_initial_points_do_not_count() -> None:
    optimizer = Optimizer(SQUARE, seed=0, options=Options(crashes="separate", initial=5))
    for number, point in enumerate(SQUARE.sobol(5, 3)):
        optimizer.tell(point, float(number) if number < 2 else CRASHED)
    assert optimizer.search().caution == Caution(settled=0.9)
    optimizer.tell({"x": 0.6, "y": 0.5}, CRASHED)
    assert optimizer.search().caution == Caution(1, 0.0, settled=0.9, escape=0.5)


def test_high_costs_that_warn_of_crashes_need_no_caution_until_little_is_left_to_gain() -> None:
    failures = [WORKS] * 5 + [FAILS] * 5
    assert Options().caution(failures, correlation=0.9) == Caution(settled=0.9)
    few = [WORKS] * 8 + [FAILS] * 2
    assert Options().caution(few, correlation=0.0) == Caution(2, 0.8, settled=0.9, escape=0.5)
    assert Options().caution(few, correlation=-0.9) == Caution(2, 0.8, settled=0.9, escape=1.0)
    assert Options(crash_budget=6).caution(failures, correlation=0.9) == Caution(floor=0.9, settled=0.9, budget=0.9)
    assert Options(crash_budget=6).caution([False], spent=5) == Caution(floor=0.9, settled=0.9, budget=0.9)


def test_no_caution_where_every_risk_is_taken_or_the_paper_is_followed() -> None:
    failures = [FAILS] * 10
    assert Options(risk=1.0).caution(failures) == Caution()
    fixed = {"objective": FixedModel(0.2, 1.0)}
    assert Options(fixed=fixed).caution(failures) == Caution()
    assert Options(fixed=fixed, crash_budget=12).caution(failures).floor == pytest.approx(0.8)


def test_the_fewer_crashes_are_left_the_surer_a_point_must_be() -> None:
    floors = [Options(risk=1.0, crash_budget=5).caution([FAILS] * count + [WORKS] * 10).floor for count in range(7)]
    assert floors == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.99])


@pytest.mark.parametrize(
    "wrong", [{"risk": 0.0}, {"risk": 1.1}, {"risk": "low"}, {"crash_budget": -1}, {"crash_budget": True}]
)
def test_wrong_risks_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Options(**wrong)  # type: ignore[arg-type]


def border(options: Options | None = None) -> Optimizer:
    """Costs that fall towards a border behind which everything crashes."""
    optimizer = Optimizer(SQUARE, seed=1, options=options)
    for i in range(5):
        for j in range(5):
            x, y = 0.05 + 0.2 * i, 0.05 + 0.2 * j
            optimizer.tell({"x": x, "y": y}, CRASHED if x + y > 1.2 else -x - y)
    return optimizer


def test_a_spent_budget_keeps_the_search_where_success_is_sure() -> None:
    careful, bold = border(Options(crash_budget=0)), border(Options(risk=1.0))
    assert careful.ask().why.success_probability >= 0.99 - 1e-6
    assert bold.ask().why.success_probability < 0.9


def test_a_floor_that_no_point_reaches_is_dropped_or_lowered_for_the_budget() -> None:
    def allowed(points: torch.Tensor) -> torch.Tensor:
        return points[:, 0] < 0.9

    def log_success(points: torch.Tensor) -> torch.Tensor:
        return points[:, 0].log()

    looked = torch.linspace(0.05, 1.0, 20, dtype=torch.float64).unsqueeze(-1)  # the safest that is allowed: 0.85

    def kept(least: float, *, relax: bool = False, where: torch.Tensor = looked) -> list[float]:
        return looked[_likely(allowed, log_success, least, where, relax=relax)(looked)].squeeze(-1).tolist()

    assert kept(0.0) == kept(0.95) == pytest.approx(looked[:17].squeeze(-1).tolist())
    assert kept(0.8) == kept(0.8, relax=True) == pytest.approx([0.8, 0.85])
    assert kept(0.95, relax=True) == pytest.approx([0.7, 0.75, 0.8, 0.85])
    assert kept(0.95, relax=True, where=looked[19:]) == kept(0.0)  # nothing to look at: nothing to compare with


def test_nothing_is_risked_once_little_is_left_to_gain() -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)}, seed=0)
    for x in (*torch.linspace(0, 1, 15).tolist(), 0.32, 0.33, 0.34):
        optimizer.tell({"x": x}, CRASHED if x > 0.8 else (x - 0.33) ** 2)
    search = optimizer.search()
    assert search._settled
    assert search._care.floor >= 0.9
    assert optimizer.ask().why.success_probability >= 0.9 - 1e-6


def test_a_search_shows_the_score_that_it_maximises() -> None:
    optimizer = border()
    search = optimizer.search()
    point, mode = search.next()
    suggestion = optimizer.copy().ask()
    assert suggestion == SQUARE.decode(point.point.numpy())
    assert suggestion.why.mode == mode
    score = search.score(mode)(torch.cat([point.point.unsqueeze(0), torch.rand(200, 2, dtype=torch.float64)]))
    assert float(score[0]) == pytest.approx(point.value)
    assert score.isfinite().all()


def test_the_score_is_the_acquisition_that_botorch_users_get() -> None:
    optimizer = Optimizer(SQUARE, seed=1, constraints=[Constraint("g")], options=Options(risk=1.0))
    for point in SQUARE.sobol(16, 0):
        g = point["x"] - point["y"]
        optimizer.tell(point, point["x"] + point["y"], g=g if g < 0.3 else VIOLATED)
    search = optimizer.search()
    models, X = search.models, torch.rand(50, 2, dtype=torch.float64)
    entropy = MinValueEntropySearch(
        models.objective, search._minima(models), noise_variance=models.objective.noise_variance
    )
    botorch = FailureAware(entropy, [models.log_weight])
    with torch.no_grad():
        torch.testing.assert_close(search.score("mesco")(X), botorch(X.unsqueeze(-2)))


@pytest.mark.parametrize("mode", ["mes", "logei"])
@pytest.mark.parametrize("options", [Options(risk=1.0), Options(), Options(crash_budget=2)])
def test_the_quick_way_to_a_score_gives_its_values_and_gradients(options: Options, mode: str) -> None:
    search = border(options).search()
    X = torch.rand(40, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    slope = search.slope(mode)
    assert slope is not None
    values, gradients = slope(X.detach().numpy())
    plain = search.score(mode)(X)
    torch.testing.assert_close(torch.from_numpy(values), plain.detach(), rtol=1e-9, atol=1e-9)
    other = torch.autograd.grad(plain.sum(), X)[0]
    torch.testing.assert_close(torch.from_numpy(gradients), other, rtol=1e-6, atol=1e-6)


def test_expected_improvement_takes_over_once_little_is_left_to_gain() -> None:
    def bowl(acquisition: AcquisitionName) -> Optimizer:
        optimizer = Optimizer({"x": (0.0, 1.0)}, acquisition=acquisition)
        for x in (*torch.linspace(0, 1, 15).tolist(), 0.32, 0.33, 0.34):
            optimizer.tell({"x": x}, CRASHED if x > 0.8 else (x - 0.33) ** 2)
        return optimizer

    quick, paper = bowl("auto"), bowl("mes")
    assert quick.search().closing == "logei"
    assert quick.ask().why.mode == "logei"
    assert paper.ask().why.mode == "mes"
    few = Optimizer({"x": (0.0, 1.0)})
    for x in (0.1, 0.5, 0.9):
        few.tell({"x": x}, CRASHED if x > 0.8 else (x - 0.33) ** 2)
    assert few.ask().why.mode == "mes"
    constrained = Optimizer({"x": (0.0, 1.0)}, constraints=[Constraint("g")])
    assert not constrained._closes
    assert not Optimizer({"x": (0.0, 1.0)}, options=Options(crashes="absorb"))._closes


@pytest.mark.parametrize("acquisition", ["mes", "logei", "cmes"])
def test_every_acquisition_is_cautious(acquisition: str) -> None:
    optimizer = border(Options(crash_budget=0))
    optimizer.acquisition = acquisition  # type: ignore[assignment]
    assert math.isfinite(optimizer.search().next()[0].value)
    assert optimizer.ask().why.success_probability >= 0.99 - 1e-6


def test_models_are_adopted_only_from_the_same_trials() -> None:
    known = border()
    known.surrogates()
    heir = Optimizer.from_json(known.to_json())
    heir.adopt(known)
    assert heir.surrogates() is known.surrogates()
    heir.tell({"x": 0.5, "y": 0.5}, -1.0)
    fresh = Optimizer.from_json(heir.to_json())
    assert heir.ask() == fresh.ask()
    other = border()
    other._trials[3] = other._trials[4]
    other.adopt(known)
    assert other._learning.known == ()
    elsewhere = Optimizer(SQUARE, direction="maximize", seed=1)
    elsewhere.adopt(known)
    assert elsewhere._learning.known == ()


def stuck(repeats: int) -> Optimizer:
    """A search whose last trials were made in one place, far from a crash."""
    optimizer = Optimizer(SQUARE, seed=1)
    for point in SQUARE.sobol(8, 0):
        optimizer.tell(point, CRASHED if point["x"] > 0.8 else (point["x"] - 0.2) ** 2 + point["y"])
    for _ in range(repeats):
        optimizer.tell({"x": 0.2, "y": 0.0}, 0.0)
    return optimizer


@pytest.mark.parametrize("repeats", [1, 2, 3, 6])
def test_trials_in_one_place_make_the_search_doubt(repeats: int) -> None:
    search = stuck(repeats).search()
    assert search._repeats == min(repeats, 4) - 1
    doubting, plain = (one.objective for one in (search._believing, search.models))
    factor = 0.5**search._repeats
    torch.testing.assert_close(doubting.lengthscales, factor * plain.lengthscales)
    X = torch.rand(100, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        sure = (plain.moments(X)[1] / doubting.moments(X)[1]).mean()
    assert float(sure) == pytest.approx(1.0) if repeats == 1 else float(sure) < 0.95


def test_the_place_that_was_tried_again_and_again_is_left() -> None:
    there = stuck(4).ask()
    assert math.hypot(there["x"] - 0.2, there["y"]) > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_a_search_that_doubts_does_not_forget_where_trials_crash(seed: int) -> None:
    def cost(x: float, y: float) -> float:
        return (x - 0.3) ** 2 + (y - 0.3) ** 2

    def stuck_in_a_bowl(risk: float) -> Optimizer:
        optimizer = Optimizer(SQUARE, seed=1, options=Options(risk=risk))
        for point in SQUARE.sobol(24, seed):
            optimizer.tell(point, CRASHED if cost(**point) > 0.15 else cost(**point))
        for x, y in torch.cartesian_prod(*[torch.linspace(0.1, 0.5, 5)] * 2).tolist():
            optimizer.tell({"x": x, "y": y}, cost(x, y))
        for _ in range(4):
            optimizer.tell({"x": 0.3, "y": 0.3}, 0.0)
        return optimizer

    careful, bold = stuck_in_a_bowl(0.2), stuck_in_a_bowl(1.0)
    assert careful.search()._repeats == 3
    assert careful.ask().why.success_probability >= 0.5
    assert bold.ask().why.success_probability < 0.01


def test_doubt_is_no_part_of_the_best_guess() -> None:
    search = stuck(4).search()
    assert search._repeats
    assert torch.equal(search.best()[0], replace(search, latest=None).best()[0])


def test_with_fixed_hyperparameters_nothing_is_doubted() -> None:
    options = Options(fixed={"objective": FixedModel(0.3, 1.0)})
    optimizer = Optimizer(SQUARE, seed=1, options=options)
    for _ in range(3):
        optimizer.tell({"x": 0.2, "y": 0.0}, 0.0)
    assert optimizer.search()._repeats == 0


def test_a_search_looks_around_the_best_of_many_trials() -> None:
    optimizer = Optimizer(SQUARE, seed=1)
    for x, y in np.random.default_rng(0).random((130, 2)):
        optimizer.tell({"x": x, "y": y}, CRASHED if x > 0.7 else x + y)
    search = optimizer.search()
    guesses, trials = search._guesses(), search.models.objective.X
    assert guesses.shape == (300, 2)
    stable = trials[search.models.objective.fit.data.observed]
    best = stable[stable.sum(1).argmin()]
    assert bool((guesses == best).all(1).any())
    assert bool((guesses[:100, 0] > 0.7).any()) == (len(stable) < 100)


def test_a_copy_goes_its_own_way() -> None:
    optimizer = border()
    copy = optimizer.copy()
    copy.ask()
    assert copy.to_json() != optimizer.to_json()
    assert optimizer.pending == ()

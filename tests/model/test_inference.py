"""Values, labels, lapses and limits together: moments, evidence and gradients against independent answers."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, logsumexp
from scipy.stats import multivariate_normal, norm

from crashbo import NumericalError
from crashbo.model.ep import Labels
from crashbo.model.exact import exact_truncation
from crashbo.model.inference import Posterior, condition_on_values, evidence_gradient, infer
from crashbo.model.kernel import KERNELS
from crashbo.model.prediction import Predictor
from crashbo.model.rows import NOISE_FLOOR, Hyperparameters, Rows, joint_covariance
from tests.helpers import given_values, random_covariance

OBSERVED = np.array([0, 2, 3])
COSTS = np.array([0.4, -1.0, 0.7])
FEW = {"samples": 1024, "repeats": 2}  # points of the exact integrals


def test_moments_match_the_product_of_prior_and_likelihood():
    prior = random_covariance(5, seed=0)
    given = given_values(prior, OBSERVED, COSTS, 0.04)
    likelihood, weighted = np.zeros(5), np.zeros(5)
    likelihood[OBSERVED], weighted[OBSERVED] = 1 / 0.04, COSTS / 0.04
    covariance = np.linalg.inv(np.linalg.inv(prior) + np.diag(likelihood))
    assert np.allclose(given.covariance[0], covariance, atol=1e-12)
    assert np.allclose(given.mean[0], covariance @ weighted, atol=1e-12)


def test_log_evidence_is_the_density_of_the_values():
    prior = random_covariance(5, seed=1)
    given = given_values(prior, OBSERVED, COSTS, 0.04)
    block = prior[np.ix_(OBSERVED, OBSERVED)] + 0.04 * np.eye(3)
    assert given.log_evidence[0] == pytest.approx(multivariate_normal(cov=block).logpdf(COSTS), abs=1e-10)


def test_every_value_may_have_its_own_noise():
    prior = random_covariance(4, seed=2)
    noise = np.array([0.01, 0.1, 1.0])
    index = [*OBSERVED, *range(4)]
    given = condition_on_values(prior[np.ix_(index, index)][None], COSTS, noise[None])
    block = prior[np.ix_(OBSERVED, OBSERVED)] + np.diag(noise)
    assert np.allclose(given.mean[0], prior[:, OBSERVED] @ np.linalg.solve(block, COSTS), atol=1e-12)


def test_batches_are_solved_one_by_one():
    index = [*OBSERVED, *range(4)]
    priors = np.stack([random_covariance(4, seed=seed)[np.ix_(index, index)] for seed in range(3)])
    noises = np.repeat(np.array([[0.01], [0.1], [1.0]]), 3, -1)
    batched = condition_on_values(priors, COSTS, noises)
    for i in range(3):
        alone = condition_on_values(priors[i : i + 1], COSTS, noises[i : i + 1])
        assert np.allclose(batched.mean[i], alone.mean[0], atol=1e-13)
        assert np.allclose(batched.covariance[i], alone.covariance[0], atol=1e-13)
        assert np.allclose(batched.log_evidence[i], alone.log_evidence[0], atol=1e-12)


def test_without_values_the_prior_stays():
    prior = random_covariance(3, seed=3)
    given = given_values(prior, OBSERVED[:0], COSTS[:0], 0.01)
    assert np.array_equal(given.covariance[0], prior)
    assert not given.mean.any()
    assert given.log_evidence[0] == 0.0


def test_inputs_are_left_alone():
    prior, values, noise = random_covariance(4, seed=5)[None], np.array([0.3, 0.1]), np.full((1, 2), 0.05)
    copies = prior.copy(), values.copy(), noise.copy()
    condition_on_values(prior, values, noise)
    assert all(np.array_equal(a, b) for a, b in zip((prior, values, noise), copies, strict=True))


def test_an_indefinite_prior_is_refused():
    with pytest.raises(NumericalError, match="not positive definite"):
        condition_on_values(np.array([[[1.0, 2.0], [2.0, 1.0]]]), np.zeros(2), np.full((1, 2), 1e-6))


# --- the whole model: two outputs, a limit that is a latent, a lapse rate ----------------------


def two_outputs(n: int = 7, seed: int = 0) -> Rows:
    """A cost that is seen at successes, and a margin with a label everywhere."""
    rng = np.random.default_rng(seed)
    crashed = np.arange(n) % 3 == 2
    below, above = np.flatnonzero(~crashed), np.flatnonzero(crashed)
    zeros = np.zeros(len(below), dtype=int)
    labelled = np.concatenate([below, above])
    sign = np.concatenate([np.ones(len(below)), -np.ones(len(above))])
    return Rows(rng.uniform(size=(n, 2)), below, zeros, rng.normal(size=len(below)), labelled, np.ones(n, int), sign)


def settings(lapse: float = 0.0, limit_deviation: float = 0.0, kernel: str = "matern52") -> Hyperparameters:
    """Cost and margin related by 0.6; with a deviation the limit is a latent that is constant over the points."""
    mixing = [[1.3, 0.0], [0.6, 0.8]]
    lengthscale = [[0.4, 0.7], [0.3, 0.5]]
    if limit_deviation:
        mixing = [[1.3, 0.0, 0.0], [0.6, 0.8, -limit_deviation]]
        lengthscale.append([1e6, 1e6])
    return Hyperparameters(
        np.array([lengthscale]), np.array([mixing]), np.array([[0.01, 1.0]]), np.array([[0.0, 0.5]]),
        np.array([lapse]), KERNELS[kernel],
    )  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
def test_joint_covariance_follows_the_formula(kernel):
    rows, at = two_outputs(), settings(kernel=kernel)
    found = joint_covariance(rows, at)[0]
    shape = {
        "rbf": lambda r: math.exp(-0.5 * r**2),
        "matern32": lambda r: (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r),
        "matern52": lambda r: (1 + math.sqrt(5) * r + 5 * r**2 / 3) * math.exp(-math.sqrt(5) * r),
    }[kernel]
    for i, j in itertools.product(range(len(rows.point)), repeat=2):
        gap = rows.X[rows.point[i]] - rows.X[rows.point[j]]
        a, b = at.mixing[0, rows.output[i]], at.mixing[0, rows.output[j]]
        expected = sum(a[k] * b[k] * shape(np.linalg.norm(gap / at.lengthscale[0, k])) for k in range(2))
        assert found[i, j] == pytest.approx(expected, abs=1e-12)


def exact(posterior: Posterior) -> float:
    """The log evidence, its truncation integrated."""
    rows, at, given = posterior.rows, posterior.at, posterior.given
    shape = given.mean.shape
    labels = Labels(
        rows.sign, at.threshold[:, rows.label_output], given.smallest_width, np.broadcast_to(at.lapse[:, None], shape)
    )
    return (
        float(given.log_evidence[0]) + exact_truncation(given.mean[0], given.covariance[0], labels, **FEW).log_partition
    )


def test_lapses_match_the_sum_over_all_subsets_of_lapsed_labels():
    """EP's evidence is close while lapses are decided, and too low by up to a third of a nat where they are not."""
    errors = []
    for seed, lapse in itertools.product(range(8), (0.0, 0.003, 0.03, 0.3)):
        posterior = infer(two_outputs(seed=seed), settings(lapse))
        assert posterior.ep.converged.all()
        errors.append(posterior.log_evidence[0] - exact(posterior))
        kept = posterior.ep.kept[0][posterior.rows.sign < 0]
        if ((kept > 0.98) | (kept < 0.12)).all():
            assert abs(errors[-1]) < 0.05
    assert max(map(abs, errors)) < 0.35
    assert np.mean(np.abs(errors)) < 0.06


@pytest.mark.parametrize("lapse", [0.05, 0.3])
def test_the_probability_that_a_label_held_matches_the_subsets(lapse):
    posterior = infer(two_outputs(seed=1), settings(lapse))
    rows, at, given = posterior.rows, posterior.at, posterior.given
    crashes = np.flatnonzero(rows.sign < 0)
    logs = {}
    for lapsed in itertools.product([False, True], repeat=len(crashes)):
        kept = np.setdiff1d(np.arange(len(rows.sign)), crashes[list(lapsed)])
        part = Labels(rows.sign[kept], np.full((1, len(kept)), 0.5), np.full((1, len(kept)), 1e-4), np.zeros((1, 1)))
        mass = exact_truncation(given.mean[0][kept], given.covariance[0][np.ix_(kept, kept)], part, **FEW).log_partition
        logs[lapsed] = mass + sum(math.log(at.lapse[0] if one else 1 - at.lapse[0]) for one in lapsed)
    total = logsumexp(list(logs.values()))
    for i, row in enumerate(crashes):
        held = logsumexp([log for lapsed, log in logs.items() if not lapsed[i]])
        assert posterior.ep.kept[0, row] == pytest.approx(math.exp(held - total), abs=0.02)


@pytest.mark.parametrize("deviation", [0.3, 1.0, 3.0])
def test_a_limit_that_is_a_latent_is_integrated_over(deviation):
    rows = two_outputs(seed=2)
    found = infer(rows, settings(limit_deviation=deviation)).log_evidence[0]

    def density(limit: float) -> float:
        at = settings()
        moved = replace(at, threshold=at.threshold + np.array([[0.0, limit]]))
        return math.exp(exact(infer(rows, moved))) * norm.pdf(limit, 0.0, deviation)

    nodes = np.linspace(-4 * deviation, 4 * deviation, 41)
    expected = math.log(np.sum([density(limit) for limit in nodes]) * (nodes[1] - nodes[0]))
    assert found == pytest.approx(expected, abs=0.03)


def test_the_posterior_of_the_limit_is_that_of_the_integral():
    """One success and one crash, whose margins are independent."""
    X = np.array([[0.0], [1.0]])
    none = np.zeros(0, dtype=int)
    rows = Rows(X, none, none, np.zeros(0), np.arange(2), np.zeros(2, dtype=int), np.array([1.0, -1.0]))
    mixing = np.array([[[1.0, -2.0], [0.0, 2.0]]])  # the margin, and the limit alone, which is not seen
    at = Hyperparameters(np.array([[[1e-3], [1e6]]]), mixing, np.ones((1, 2)), np.zeros((1, 2)), np.zeros(1))
    posterior = infer(rows, at)
    weight = [quad(lambda c, k=k: c**k * norm.pdf(c, 0, 2) * norm.cdf(c) * norm.sf(c), -20, 20)[0] for k in range(3)]
    assert posterior.log_evidence[0] == pytest.approx(math.log(weight[0]), abs=0.03)
    q = Predictor(posterior)(X[:1])
    assert q.mean[0, 1, 0] == pytest.approx(weight[1] / weight[0], abs=1e-6)
    assert q.variance[0, 1, 0] == pytest.approx(weight[2] / weight[0], rel=0.1)


def clipped(posterior: Posterior) -> bool:
    return bool(((posterior.ep.precision == 0) & (posterior.ep.shift != 0)).any())


@pytest.mark.parametrize("lapse", [0.0, 0.02])
@pytest.mark.parametrize("width", [0.0, 0.3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_evidence_gradients_match_finite_differences(lapse, width, kernel):
    """Of a value and its own limit: two outputs, one latent."""
    rows = two_outputs(seed=2)

    def found(theta: np.ndarray) -> Posterior:
        lengths, (variance, noise) = np.exp(theta[:2]), np.exp(theta[2:4])
        mixing, noises = np.array([[[math.sqrt(variance)], [0.8]]]), np.array([[noise, 1.0]])
        limits = np.array([[0.0, theta[4]]])
        at = Hyperparameters(lengths[None, None], mixing, noises, limits, np.full(1, lapse), KERNELS[kernel])
        return infer(rows, at, width=width, tolerance=1e-11)

    theta = np.array([-0.9, -0.4, 0.3, -1.5, 0.6])
    posterior = found(theta)
    assert not clipped(posterior)
    gradient = evidence_gradient(posterior)
    for j in range(len(theta)):
        ends = [found(theta + h * np.eye(5)[j]).log_evidence[0] for h in (1e-5, -1e-5)]
        assert gradient[j] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=2e-3, abs=2e-4), j


@pytest.mark.parametrize("lapse", [0.0, 0.1])
def test_predictions_and_their_gradients(lapse):
    rows, at = two_outputs(seed=4), settings(lapse, limit_deviation=1.0)
    predictor = Predictor(infer(rows, at))
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(4, 2))
    weight = rng.normal(size=(3, 1, 2, 4))
    weight[2, :, 0] = 0.0  # the covariance of the first output with itself is its variance

    def total(points: np.ndarray) -> float:
        q = predictor(points)
        return float((weight[0] * q.mean + weight[1] * q.variance + weight[2] * q.covariance).sum())

    gradient = predictor(X).vjp(*weight)
    for index in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[index] = 1e-6
        assert gradient[index] == pytest.approx((total(X + step) - total(X - step)) / 2e-6, rel=1e-4, abs=1e-6)


def test_predictions_follow_the_joint_gaussian():
    """Moments at the trials are those that EP has there."""
    rows, at = two_outputs(seed=5), settings()
    posterior = infer(rows, at)
    q = Predictor(posterior)(rows.X[rows.label_point])
    assert np.allclose(q.mean[0, 1], posterior.ep.mean[0], atol=1e-6)
    assert np.allclose(q.variance[0, 1], posterior.ep.variance[0], atol=1e-6)


def test_a_width_acts_as_noise_of_the_label():
    rows, at = two_outputs(seed=6), settings()
    none = np.zeros(0, dtype=int)
    alone = replace(rows, X=rows.X[:1], value_point=none, value_output=none, values=np.zeros(0), label_point=none + 0)
    alone = replace(alone, label_point=np.array([0]), label_output=np.array([1]), sign=np.array([-1.0]))
    found = infer(alone, at, width=0.7).log_evidence[0]
    assert found == pytest.approx(log_ndtr(-0.5 / math.hypot(1.0, 0.7)), abs=1e-9)


def test_tiny_noise_acts_as_the_floor():
    rows = two_outputs()
    tiny, floor = (replace(settings(), noise=np.array([[noise, 1.0]])) for noise in (1e-30, NOISE_FLOOR * 1.3**2))
    assert np.array_equal(tiny.row_noise(rows), floor.row_noise(rows))

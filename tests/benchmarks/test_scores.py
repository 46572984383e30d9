"""Scores over draws, against numbers worked out by hand."""

import json
import math

import numpy as np
import pytest
from benchmarks.suite.__main__ import app
from benchmarks.suite.records import Row
from benchmarks.suite.scores import make_report, normalised, pair, render, typical_regret
from typer.testing import CliRunner

from crashbo.errors import InputError


def run(number, method, at_20, at_50, crashes=()):
    """A run of 50 trials, 4 of them the shared design, with these regrets from trial 20 and from trial 50 on."""
    rows = []
    for trial in range(1, 51):
        regret = at_50 if trial == 50 else at_20
        asked = None if trial <= 4 else 0.1
        rows.append(
            Row(f"draw-{number}", method, number, trial, trial in crashes, None, regret, regret, asked, asked, None)
        )
    return rows


@pytest.fixture
def rows():
    return [
        *run(0, "random", 4.0, 2.0),
        *run(1, "random", 10.0, 10.0, crashes=(1, 2, 30)),
        *run(0, "good", 2.0, 0.2, crashes=(5, 6)),
        *run(1, "good", math.inf, 0.0, crashes=range(1, 30)),
    ]


def find(report, method, trial):
    return next(one for one in report.scores if (one.method, one.trial) == (method, trial))


def test_scores_by_hand(rows):
    report = make_report(rows)
    assert (report.draws, report.left_out) == (2, 0)
    # good at 20: 2 / 2, and 1 because nothing succeeded; random: 4 / 2 and 10 / 10
    assert find(report, "good", 20).geometric_mean == pytest.approx(1.0)
    assert find(report, "random", 20).geometric_mean == pytest.approx(math.sqrt(2.0))
    assert find(report, "random", 20).percentile_90 == pytest.approx(1.9)
    assert find(report, "good", 20).without_success == 1
    # at 50: 0.2 / 2, and 0 / 10 raised to 1e-6
    assert find(report, "good", 50).geometric_mean == pytest.approx(math.sqrt(0.1 * 1e-6))
    assert find(report, "good", 50).median == pytest.approx((0.1 + 1e-6) / 2)
    assert find(report, "random", 50).geometric_mean == pytest.approx(1.0)
    assert find(report, "good", 50).mean_rank == 1.0
    # on draw 1 nothing succeeded before trial 20: rank 2 there
    assert find(report, "good", 20).mean_rank == find(report, "random", 20).mean_rank == 1.5


def test_slow_methods_may_end_at_the_last_trial_that_is_scored(rows):
    short = [row for row in rows if row.method == "random" or row.trial <= 20]
    assert make_report(short).draws == 0
    report = make_report(short, checkpoints=(20,))
    assert report.draws == 2
    assert report.scores == tuple(one for one in make_report(rows).scores if one.trial == 20)
    assert "After 50 trials" not in render(report)


def test_crashes_by_hand(rows):
    report = make_report(rows)
    assert find(report, "random", 20).crashes == pytest.approx(2 / 40)
    assert find(report, "random", 20).crashes_asked == 0
    assert find(report, "random", 50).crashes_asked == pytest.approx(1 / 92)
    assert find(report, "good", 50).crashes == pytest.approx((2 + 29) / 100)
    assert find(report, "good", 50).crashes_asked == pytest.approx((2 + 25) / 92)


def test_pairs_by_hand(rows):
    report = make_report(rows, against="good")
    early, late = report.pairings
    assert (early.trial, early.wins, early.losses, early.ties) == (20, 1, 1, 0)
    assert early.ratio == pytest.approx(math.sqrt((1 / 2) * (1 / 1)))
    assert (late.wins, late.losses, late.p) == (2, 0, 0.5)
    tie = pair("a", "b", 20, {"a": np.array([1.0, math.inf]), "b": np.array([1.0, math.inf])})
    assert (tie.wins, tie.losses, tie.ties, tie.ratio, tie.p) == (0, 0, 2, 1.0, 1.0)


def test_only_draws_that_every_method_has_count(rows):
    more = [*rows, *run(2, "random", 1.0, 1.0), *run(3, "random", 1.0, 1.0), *run(3, "good", 1.0, 1.0)[:20]]
    report = make_report(more)
    assert (report.draws, report.left_out) == (2, 2)
    assert report.scores == make_report(rows).scores


@pytest.mark.parametrize("useless", [0.0, math.inf])
def test_unit_where_random_search_gives_none(useless):
    rows = [*run(0, "random", useless, useless), *run(0, "good", 2.0, 1.0)]
    report = make_report(rows, typical=lambda name: 4.0)
    assert find(report, "good", 20).geometric_mean == pytest.approx(0.5)
    assert find(report, "random", 50).geometric_mean == pytest.approx(1e-6 if useless == 0 else 1.0)


def test_typical_regret_is_that_of_points_that_succeed():
    from benchmarks.suite.draws import draw

    problem = draw(0)
    found = [problem.run(one, 0, 1).value for one in problem.space.sample(3000, np.random.default_rng(0))]
    finite = [value for value in found if math.isfinite(value)]
    assert typical_regret("draw-0") == pytest.approx(np.median(finite) - problem.optimum, rel=0.1)


def test_regret_below_the_stored_optimum_counts_as_the_lowest():
    assert normalised(run(0, "good", -1.0, -1.0), 2.0, 20) == 1e-6


def test_markdown_and_json(rows):
    report = make_report(rows, against="good")
    text = render(report)
    assert "2 draws that every method has" in text
    assert "| `good` | 1 | 1 | 1 | 1.50 |" in text
    assert "### `good` against each other" in text
    assert json.loads(json.dumps(report.to_json()))["pairings"][1]["wins"] == 2


def test_command_runs_draws_and_scores_them(tmp_path):
    runner, folder = CliRunner(), ["--out", str(tmp_path)]
    result = runner.invoke(app, ["run", "--draws", "0-1,1000", "--methods", "random,sobol", *folder])
    assert result.exit_code == 0, result.output
    again = runner.invoke(app, ["run", "--draws", "0-1,1000", "--methods", "random,sobol", *folder])
    assert "draw-0 random" not in again.output
    text = runner.invoke(app, ["scores", "--against", "sobol", *folder]).output
    assert "3 draws that every method has" in text
    found = json.loads(runner.invoke(app, ["scores", "--draws", "0-1", "--json", *folder]).output)
    assert found["draws"] == 2
    assert {one["method"] for one in found["scores"]} == {"random", "sobol"}


def test_mistakes_are_named(tmp_path):
    runner = CliRunner()
    wrong = runner.invoke(app, ["run", "--draws", "a-b", "--out", str(tmp_path)])
    assert isinstance(wrong.exception, InputError)
    assert "`draws` must look like" in str(wrong.exception)
    empty = runner.invoke(app, ["scores", "--out", str(tmp_path)])
    assert "`out` must hold runs of random" in str(empty.exception)
    unknown = runner.invoke(app, ["scores", "--against", "nobody", "--out", str(tmp_path)])
    assert "`against` must be among" in str(unknown.exception)

"""Tables of the suite, against numbers worked out by hand."""

import math

import pytest
from benchmarks.suite.records import Row
from benchmarks.suite.stats import (
    calibrate,
    compare,
    converging,
    group_runs,
    head_to_head,
    holm,
    mean_ranks,
    peers,
    quartiles,
    regret_at,
)
from benchmarks.suite.tables import calibration_by_problem, render


def run(problem, method, seed, regrets, crashes=(), success=None):
    """Rows with these regrets, trial by trial."""
    return [
        Row(problem, method, seed, index + 1, index in crashes, None, regret, regret, 0.1, 0.05, success)
        for index, regret in enumerate(regrets)
    ]


@pytest.fixture
def rows():
    found = []
    for seed, end in enumerate([1.0, 2.0, 3.0]):
        found += run("p", "crashbo", seed, [9.0, end], crashes=[0])
        found += run("p", "random", seed, [8.0, end + 1])
        found += run("p", "sobol", seed, [math.inf, math.inf], crashes=[0, 1])
        found += run("q", "crashbo", seed, [5.0, 4.0])
        found += run("q", "random", seed, [5.0, 4.0])
        found += run("q", "sobol", seed, [5.0, 3.0])
    return found


def test_quartiles_by_hand():
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (3.0, 2.0, 4.0)
    assert quartiles([1.0, 2.0]) == (1.5, 1.25, 1.75)
    assert quartiles([1.0, math.inf]) == (math.inf, math.inf, math.inf)
    assert quartiles([1.0, 2.0, math.inf]) == (2.0, 1.5, math.inf)


def test_regret_at_a_trial_or_the_end(rows):
    mine = group_runs(rows)["p"]["crashbo"][1]
    assert [regret_at(mine, 1), regret_at(mine, 20), regret_at(mine)] == [9.0, 2.0, 2.0]


def test_mean_ranks_by_hand(rows):
    # p: crashbo 2, random 3, sobol none; q: crashbo and random tie behind sobol
    ranks, shared = mean_ranks(group_runs(rows))
    assert shared == ["p", "q"]
    assert ranks == {"crashbo": (1 + 2.5) / 2, "random": (2 + 2.5) / 2, "sobol": (3 + 1) / 2}


def test_ranks_leave_out_problems_some_method_lacks(rows):
    kept = [row for row in rows if not (row.problem == "q" and row.method == "sobol")]
    ranks, shared = mean_ranks(group_runs(kept))
    assert shared == ["p"]
    assert ranks == {"crashbo": 1.0, "random": 2.0, "sobol": 3.0}


def test_holm_by_hand():
    # 3 * 0.01, then the larger of that and 2 * 0.02, then 0.5 alone
    assert holm([0.5, 0.01, 0.02]) == pytest.approx([0.5, 0.03, 0.04])
    assert holm([0.02, 0.01, 0.015]) == pytest.approx([0.03, 0.03, 0.03])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_paired_test_by_hand():
    # Six pairs, all of one sign: the exact two-sided p is 2 / 2^6.
    a = {seed: run("p", "crashbo", seed, [float(seed)]) for seed in range(6)}
    b = {seed: run("p", "random", seed, [2.0 * seed + 1]) for seed in range(6)}
    found = compare(a, b, "random")
    assert found.p == pytest.approx(2 / 2**6)
    assert (found.verdict, found.seeds) == ("better", 6)
    assert compare(b, a, "crashbo").verdict == "worse"
    assert compare(a, a, "crashbo").p == 1.0
    never = {seed: run("p", "sobol", seed, [math.inf]) for seed in range(6)}
    assert compare(a, never, "sobol").verdict == "better"
    assert compare(never, never, "sobol").verdict == "same"


def test_run_by_run_by_hand(rows):
    # p: lower in all three; q: ties with random, which do not count in the test
    found = head_to_head(group_runs(rows), "crashbo", "random")
    assert (found.pairs, found.lower, found.crashes) == (6, 3, (0.5, 0.0))
    assert found.p == pytest.approx(2 / 2**3)
    found = head_to_head(group_runs(rows), "crashbo", "sobol")  # never succeeded on p, ahead on q
    assert (found.pairs, found.lower, found.p) == (6, 3, 1.0)
    assert head_to_head(group_runs(rows), "random", "random").p == 1.0
    assert head_to_head(group_runs(rows), "crashbo", "vizier") is None


def test_best_peer_and_safest_that_converges(rows):
    runs = group_runs(rows)
    assert peers(runs["p"]) == ["random", "sobol"]
    assert peers(runs["q"]) == ["sobol", "random"]
    assert converging(runs["p"]) == ["random"]


def test_calibration_by_hand():
    # Ten at 0.95, nine succeed: off by 0.05. Ten at 0.25, none succeeds: off by 0.25.
    rows = [Row("p", "crashbo", 0, 20 + i, i == 0, None, 0, 0, None, None, 0.95) for i in range(10)]
    rows += [Row("p", "crashbo", 1, 20 + i, True, None, 0, 0, None, None, 0.25) for i in range(10)]
    rows += [Row("p", "crashbo", 2, 19, True, None, 0, 0, None, None, 1.0)]  # too early to count
    found = calibrate(rows)
    assert found.error == pytest.approx((10 * 0.05 + 10 * 0.25) / 20)
    assert found.count == 20
    assert found.bins[9] == (10, pytest.approx(0.95), pytest.approx(0.9))
    assert math.isnan(calibrate([]).error)
    assert "| p | 0.150 |" in calibration_by_problem(rows)


def test_rendered_tables(rows):
    text = render(rows)
    assert "| `crashbo` | 1.75 | 25.0% | 0 | 100.0 | 50.0 | 6 |" in text
    assert "| `sobol` | 2.00 | 50.0% | 3 |" in text
    assert "| `crashbo` | 2 [1.5, 2.5] | 2 [1.5, 2.5] | 2 [1.5, 2.5] | 1.0 | 100.0 | 3 |" in text
    assert "| `sobol` | none [none, none] |" in text
    assert "| p | 2 | `random` 3 | 0.25 | 0.5 | same | 1.0 | `random` 0.0 | 3 |" in text
    assert "| `random` | 6 | 3 | 0.2 | 0.5 | 0.0 |" in text
    assert text.index("### p") < text.index("### q")


def test_short_runs_are_left_out(rows):
    note = "1 runs with fewer trials than others of the same problem are left out."
    text = render([*rows, *run("p", "crashbo", 3, [100.0])])
    assert note in text
    assert text.replace(note + "\n\n", "") == render(rows)


def test_pictures(rows, tmp_path):
    from benchmarks.suite.pictures import draw_all

    drawn = draw_all(rows, tmp_path)
    assert [path.name for path in drawn] == ["p.png", "q.png", "overview.png"]
    assert all(path.stat().st_size > 5000 for path in drawn)


def test_a_problem_where_nothing_succeeded_has_a_picture_too(tmp_path):
    from benchmarks.suite.pictures import draw_all

    lost = [*run("p", "crashbo", 0, [math.inf, math.inf]), *run("p", "random", 0, [math.inf, math.inf])]
    assert all(path.stat().st_size > 5000 for path in draw_all(lost, tmp_path))

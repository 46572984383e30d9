"""The benchmark of time per suggestion runs, and counts what it says."""

from benchmarks.suggestions import by_method, compare, grow, problem, show


def test_every_method_is_timed_beside_the_others(capsys) -> None:
    (row,) = compare([(8, 2)])
    assert row["share of gpsampler-worst"] == row["crashbo"] / row["gpsampler-worst"]
    assert all(value > 0 for value in row.values())
    show(by_method([row]), "times")
    assert "gpsampler-worst" in capsys.readouterr().out.replace("\n", "")


def test_the_parts_of_a_suggestion_are_timed() -> None:
    (row,) = grow([(12, 2)])
    assert all(row[name] > 0 for name in ("models from scratch", "suggestion", "best guess"))


def test_a_quarter_of_the_cube_crashes() -> None:
    one = problem(3)
    outcomes = [one.run(params, 0, i).cost for i, params in enumerate(one.space.sobol(512, 0))]
    assert 0.2 < sum(cost is None for cost in outcomes) / 512 < 0.3

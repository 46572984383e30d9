"""The benchmark of what crashes have to do with the cost."""

from benchmarks import relation


def test_a_draw_has_a_true_kind_and_what_is_said_of_it():
    found = list(relation.run(1000, (8, 12)))
    assert [one[0] for one in found] == [8, 12]
    for _, kind, top, share, named in found:
        assert kind in relation.KINDS
        assert top in relation.KINDS
        assert 0.25 <= share <= 1
        assert share >= 0.99 or not named


def test_every_fifth_problem_crashes_at_random():
    assert {one[1] for one in relation.run(1004, (6, 8, 10))} == {"random"}


def test_the_table_counts_what_is_named_and_what_is_not(monkeypatch, capsys):
    told = [(20, "high", "high", 0.995, True), (20, "low", "high", 0.995, True), (20, "low", "low", 0.8, False)]
    monkeypatch.setattr(relation, "run", lambda number, counts: iter(told))
    monkeypatch.setattr("sys.argv", ["relation", "--draws", "1", "--trials", "20"])
    relation.main()
    lines = capsys.readouterr().out.splitlines()
    assert "after 20 trials, a cause is named: 2 problems, right in 50%" in lines
    assert "after 20 trials, unclear: 1 problems, right in 100%" in lines
    assert "90% to 100%: 2, 50%" in lines

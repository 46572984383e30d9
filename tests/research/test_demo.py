"""The demo: the robot tuned on a kept study, pictures and report left behind."""

import json
from functools import partial

import pytest
from typer.testing import CliRunner

from crashbo.cli import app
from crashbo.research.demo import Step, run_demo
from crashbo.research.pole_figures import animate_rollouts
from crashbo.research.problems.pole import rollout
from crashbo.research.problems.pole.tuning import ROBOT
from crashbo.show.report.summary import shown
from crashbo.store.storage import find_place
from crashbo.store.study import open_study


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The command, once for all tests: what it printed, what came of it, and what its watcher saw."""
    results, seen = [], []

    def watched(folder, *, watch, **settings):
        def both(step):
            seen.append(step)
            watch(step)

        results.append(run_demo(folder, watch=both, **settings))
        return results[-1]

    folder = tmp_path_factory.mktemp("demo") / "new"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crashbo.research.demo.run_demo", watched)
        patch.setattr("crashbo.research.demo.animate_rollouts", partial(animate_rollouts, seconds=2.0))  # not 14
        found = CliRunner().invoke(app, ["demo", "--folder", str(folder), "--trials", "7", "--seed", "1"])
    assert found.exit_code == 0, found.output
    return found.output, results[0], seen


@pytest.fixture(scope="module")
def demo(ran):
    _, result, seen = ran
    return result, seen


def test_every_trial_is_kept_in_the_study(demo):
    result, seen = demo
    study = open_study(find_place(str(result.place), result.place.study))
    records = study.records()
    assert [one.number for one in records] == list(range(7))
    crashed = [one for one in records if one.status == "crashed"]
    assert len(crashed) == result.summary()["crashes"] == seen[-1].crashes
    assert all(one.reason for one in crashed)


def test_whoever_watches_sees_progress(demo):
    _, seen = demo
    assert [one.number for one in seen] == list(range(1, 8))
    bests = [one.best for one in seen if one.best is not None]
    assert bests == sorted(bests, reverse=True)


@pytest.mark.parametrize(("learned", "drawn"), [(1.1, 1.3), (2.0, 2.0), (None, None)])
def test_the_threshold_shown_never_lies_below_a_cost_that_held(learned, drawn):
    outcome = rollout(ROBOT.safe_gains, 0, ROBOT)
    step = Step.after([0.9, None, 1.3], 30, outcome, learned)
    assert step.threshold == drawn
    assert (step.number, step.crashes, step.best) == (3, 1, 0.9)


def test_pictures_and_report_are_left_behind(demo):
    result, _ = demo
    names = [path.name for path in result.files if path.name != "threshold.png"]
    assert names == ["report.html", "surface.png", "convergence.png", "rollouts.png", "pole.gif"]
    learned = "objective" in result.optimizer.limits
    assert learned <= any(path.name == "threshold.png" for path in result.files)
    assert all(path.stat().st_size > 1000 for path in result.files)
    report = result.files[0].read_text()
    assert "data:image/gif;base64," in report
    assert "Before, on the way and after" in report
    assert result.files[-1].read_bytes()[:6] == b"GIF89a"


def test_the_summary_says_what_happened(demo):
    result, _ = demo
    assert f"{result.summary()['crashes']} of them crashed" in result.words()
    json.dumps(result.summary())


def test_words_and_report_give_the_same_best_guess(demo):
    result, _ = demo
    report = result.files[0].read_text()
    for name, value in result.optimizer.best().params.items():
        assert f"{name} = {shown(value)}" in result.words()
        assert f">{shown(value)}<" in report


def test_the_same_seed_gives_the_same_demo_beside_the_first(demo, monkeypatch):
    result, _ = demo
    monkeypatch.setattr("crashbo.research.demo._files", lambda *drawn: ())
    again = run_demo(result.files[0].parent, seed=1, trials=7)
    assert again.place.study == "demo-2"
    assert again.summary()["best"] == result.summary()["best"]
    assert [one.objective for one in again.optimizer.trials] == [one.objective for one in result.optimizer.trials]


def test_the_command_ends_with_the_report_and_the_console(ran):
    printed, result, _ = ran
    assert "trial 5 of 7: " in printed
    assert f"Report: {result.files[0]}" in printed.replace("\n", "")
    assert "crashbo console --storage" in printed

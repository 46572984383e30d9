"""How outcomes are written on trials, corrected, and read."""

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState

import crashbo
from crashbo.adapters.optuna import (
    Record,
    best_trial,
    correct,
    crashing,
    lost_worker,
    read,
    release_running,
    report,
    report_crash,
    report_transient,
)
from crashbo.adapters.optuna.codec import SKIPPED
from crashbo.adapters.optuna.records import corrections
from tests.adapters.optuna.helpers import old
from tests.processes import wait_until

both_storages = pytest.mark.parametrize("study", ["memory", "sqlite"], indirect=True)


@pytest.fixture
def study(request: pytest.FixtureRequest, tmp_path: Path) -> optuna.Study:
    storage = f"sqlite:///{tmp_path}/study.db" if getattr(request, "param", "memory") == "sqlite" else None
    return optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=0))


def ask(study: optuna.Study) -> optuna.Trial:
    trial = study.ask()
    trial.suggest_float("x", 0.0, 1.0)
    return trial


def last(study: optuna.Study, **settings: Any) -> Record:
    return read(study, **settings)[-1]


def test_recording_needs_no_torch() -> None:
    code = "import sys, crashbo.adapters.optuna as o; o.read; o.correct; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_sampler_is_found_by_name_and_nothing_else() -> None:
    import crashbo.adapters.optuna as module

    assert "CrashBOSampler" in dir(module)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = module.Nothing


class TestReporting:
    @both_storages
    def test_a_finished_trial_has_its_cost_and_constraints(self, study: optuna.Study) -> None:
        trial = ask(study)
        report(trial, reach=11.2, heat=crashbo.VIOLATED)
        study.tell(trial, 3.0)
        record = last(study)
        assert (record.status, record.objective) == ("finished", 3.0)
        assert record.constraints == {"reach": 11.2, "heat": None}
        assert record.params == trial.params
        assert study.trials[0].user_attrs == {"constraint:reach": 11.2, "constraint:heat": "violated"}

    def test_a_crash_keeps_its_reason_and_partial_values(self, study: optuna.Study) -> None:
        trial = ask(study)
        report_crash(trial, "fell", reach=11.2)
        study.tell(trial, state=TrialState.FAIL)
        record = last(study)
        assert (record.status, record.objective, record.reason) == ("crashed", None, "fell")
        assert record.constraints == {"reach": 11.2}

    def test_a_transient_failure_is_not_learned_from(self, study: optuna.Study) -> None:
        trial = ask(study)
        report_transient(trial, "no network")
        study.tell(trial, state=TrialState.FAIL)
        record = last(study)
        assert (record.status, record.transient, record.reason) == ("ignored", True, "no network")

    @pytest.mark.parametrize("values", [{"reach": True}, {"reach": "far"}, {"objective": 1.0}])
    def test_a_bad_value_is_refused_and_nothing_written(self, study: optuna.Study, values: dict[str, Any]) -> None:
        trial = ask(study)
        with pytest.raises(crashbo.InputError, match="must be"):
            report(trial, fine=1.0, **values)
        assert study.trials[0].user_attrs == {}

    def test_the_decorator_records_then_raises(self, study: optuna.Study) -> None:
        @crashing
        def objective(trial: optuna.Trial) -> float:
            """Say what it is."""
            trial.suggest_float("x", 0.0, 1.0)
            raise crashbo.Crash("fell", reach=1.5)

        study.optimize(objective, n_trials=1, catch=(crashbo.Crash,))
        assert objective.__doc__ == "Say what it is."
        assert (last(study).reason, last(study).constraints) == ("fell", {"reach": 1.5})

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), ConnectionError("no route")])
    def test_the_decorator_marks_what_passes(self, study: optuna.Study, error: BaseException) -> None:
        def objective(trial: optuna.Trial) -> float:
            trial.suggest_float("x", 0.0, 1.0)
            raise error

        with pytest.raises(type(error)):
            study.optimize(crashing(objective, transient=[ConnectionError]), n_trials=1)
        assert last(study).transient
        assert last(study).reason == (str(error) or "KeyboardInterrupt")

    def test_any_other_error_is_a_crash_without_a_reason(self, study: optuna.Study) -> None:
        def objective(trial: optuna.Trial) -> float:
            return trial.suggest_float("x", 0.0, 1.0) / 0

        study.optimize(crashing(objective), n_trials=1, catch=(ZeroDivisionError,))
        assert (last(study).status, last(study).reason) == ("crashed", "")


class TestReading:
    def test_what_is_under_way(self, study: optuna.Study) -> None:
        study.enqueue_trial({"x": 0.5})
        study.ask()
        ask(study)
        study.enqueue_trial({"x": 0.5})
        assert [record.status for record in read(study)] == ["ignored", "pending", "ignored"]

    def test_nan_is_a_crash(self, study: optuna.Study) -> None:
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) * float("nan"), n_trials=1)
        assert last(study).status == "crashed"

    @pytest.mark.parametrize(
        ("value", "reason"), [(float("inf"), "cost inf"), (float("-inf"), "cost -inf"), (1e101, "cost beyond 1e100")]
    )
    def test_a_value_no_model_can_take_is_a_crash(self, study: optuna.Study, value: float, reason: str) -> None:
        study.tell(ask(study), value)
        assert (last(study).status, last(study).reason) == ("crashed", reason)

    def test_a_failure_before_any_param_teaches_nothing(self, study: optuna.Study) -> None:
        study.tell(study.ask(), state=TrialState.FAIL)
        assert last(study).status == "ignored"

    def test_which_failures_count_is_the_users_choice(self, study: optuna.Study) -> None:
        study.add_trials([old(x=0.1), old(x=0.2, attrs={"code": 7})])
        counts = [record.status for record in read(study, learn_from=lambda trial: "code" in trial.user_attrs)]
        assert counts == ["ignored", "crashed"]
        assert {record.status for record in read(study, learn_from=False)} == {"ignored"}

    @pytest.mark.parametrize(
        ("choice", "expected"),
        [
            ("ignore", ("pruned", None)),
            ("crash", ("crashed", None)),
            ("value", ("pruned", 4.0)),
            ("estimate", ("pruned", 4.0)),
        ],
    )
    def test_pruned_trials_are_the_users_choice(self, study: optuna.Study, choice: str, expected: Any) -> None:
        trial = ask(study)
        trial.report(4.0, step=1)
        study.tell(trial, state=TrialState.PRUNED)
        record = last(study, pruned=choice)
        assert (record.status, record.estimate) == expected
        assert record.objective is None

    @pytest.mark.parametrize("choice", ["ignore", "crash", "value"])
    def test_what_nobody_ran_teaches_nothing_whatever_the_choice(self, study: optuna.Study, choice: str) -> None:
        trial = ask(study)
        trial.report(4.0, step=1)
        trial.set_user_attr(SKIPPED, "skipped")
        study.tell(trial, state=TrialState.PRUNED)
        record = last(study, pruned=choice)
        assert (record.status, record.objective, record.word, record.reason) == ("ignored", None, "skipped", "")

    def test_pruned_without_a_value_is_a_crash_unless_ignored(self, study: optuna.Study) -> None:
        study.tell(ask(study), state=TrialState.PRUNED)
        assert (last(study).status, last(study).reason) == ("crashed", "pruned without a value")
        assert last(study, pruned="ignore").status == "pruned"

    def test_pruned_without_a_value_because_it_was_known_says_nothing(self, study: optuna.Study) -> None:
        study.add_trials([old(1.0, x=0.1), old(x=0.1, state=TrialState.PRUNED)])
        record = last(study)
        assert (record.status, record.estimate, record.teaches) == ("pruned", None, False)

    @pytest.mark.parametrize("value", [math.nan, math.inf, 1e200])
    def test_pruned_since_it_diverged_is_a_crash(self, study: optuna.Study, value: float) -> None:
        trial = ask(study)
        trial.report(0.5, step=1)
        trial.report(value, step=2)
        study.tell(trial, state=TrialState.PRUNED)
        assert last(study).status == "crashed"
        assert last(study).reason.startswith("pruned at step 2")

    def test_a_corrected_pruned_trial_has_no_estimate(self, study: optuna.Study) -> None:
        trial = ask(study)
        trial.report(0.5, step=1)
        study.tell(trial, state=TrialState.PRUNED)
        record = correct(study, trial.number, status="finished", objective=0.2)
        assert (record.status, record.objective, record.estimate) == ("finished", 0.2, None)

    def test_an_unknown_choice_is_refused(self, study: optuna.Study) -> None:
        with pytest.raises(crashbo.InputError, match="`pruned` must be one of"):
            read(study, pruned="drop")

    def test_optunas_own_constraints_are_known_limits(self, study: optuna.Study) -> None:
        trial = ask(study)
        trial.set_constraint("speed limit", 0.5)
        trial.set_constraint("heat", float("inf"))
        study.tell(trial, 1.0)
        assert last(study).limits == {"speed limit": 0.5, "heat": 1e100}

    def test_constraints_of_older_studies_are_read(self, study: optuna.Study) -> None:
        trial = ask(study)
        study._storage.set_trial_system_attr(trial._trial_id, "constraints", [-1.0, 2.0])
        assert last(study).limits == {"0": -1.0, "1": 2.0}

    def test_attributes_written_by_hand_cannot_break_it(self, study: optuna.Study) -> None:
        study.add_trial(old(1.0, x=0.1, attrs={"constraint:a": "?", "constraint:b": float("nan"), "constraint:c": 2}))
        assert last(study).constraints == {"b": None, "c": 2.0}

    def test_many_objectives_are_refused(self) -> None:
        with pytest.raises(crashbo.InputError, match="one objective; got 2"):
            read(optuna.create_study(directions=["minimize", "minimize"]))

    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    def test_what_optuna_retries_itself_teaches_nothing(self, study: optuna.Study) -> None:
        study.add_trial(old(x=0.1))
        optuna.storages.RetryHeartbeatStaleTrialCallback()(study, study.trials[0])
        first = read(study)[0]
        assert (first.status, first.transient) == ("ignored", False)


class TestCorrecting:
    @both_storages
    def test_the_last_correction_counts_and_all_are_kept(self, study: optuna.Study) -> None:
        study.add_trials([old(1.0, x=0.1, attrs={"constraint:reach": 2.0}), old(2.0, x=0.2)])
        correct(study, 0, status="crashed", reason="seen on video")
        assert (last(study).status, read(study)[0].status, read(study)[0].reason) == (
            "finished",
            "crashed",
            "seen on video",
        )
        now = correct(study, 0, status="finished", objective=5, constraints={"reach": crashbo.VIOLATED})
        assert (now.status, now.objective, now.constraints) == ("finished", 5.0, {"reach": None})
        assert read(study)[0] == now
        history = corrections(study)[0]
        assert [entry["status"] for entry in history] == ["crashed", "finished"]
        assert [entry["constraints"] for entry in history] == [{"reach": 2.0}, {"reach": "violated"}]
        assert study.trials[0].value == 1.0  # Optuna's own record is as it was

    def test_deleted_and_restored(self, study: optuna.Study) -> None:
        study.add_trial(old(1.0, x=0.1))
        correct(study, 0, status="finished", objective=2.0)
        gone = correct(study, 0, status="deleted")
        assert (gone.status, gone.deleted) == ("ignored", True)
        back = correct(study, 0, status="restored")
        assert (back.status, back.objective, back.deleted) == ("finished", 2.0, False)

    def test_a_cost_that_is_none_is_a_crash(self, study: optuna.Study) -> None:
        study.add_trial(old(1.0, x=0.1))
        now = correct(study, 0, status="finished", objective=float("nan"))
        assert (now.status, now.objective, now.reason) == ("crashed", None, "cost nan")

    def test_transient_afterwards(self, study: optuna.Study) -> None:
        study.add_trial(old(x=0.1))
        assert correct(study, 0, status="transient", reason="cable").transient

    @pytest.mark.parametrize(
        ("number", "change", "message"),
        [
            (0, {"status": "lost"}, "`status` must be one of"),
            (0, {"status": "finished"}, "`objective` must be given with status 'finished'"),
            (0, {"status": "crashed", "objective": 1.0}, "`objective` must be given with status 'finished'"),
            (0, {"status": "finished", "objective": "low"}, "`objective` must be a number"),
            (0, {"status": "crashed", "constraints": {"g": "high"}}, "`g` must be a number"),
            (1, {"status": "deleted"}, "`number` must be a finished trial; got 1, it is running"),
            (9, {"status": "deleted"}, "`number` must be a finished trial; got 9, there is no such trial"),
        ],
    )
    def test_what_is_wrong_is_refused_and_nothing_written(
        self, study: optuna.Study, number: int, change: dict[str, Any], message: str
    ) -> None:
        study.add_trial(old(1.0, x=0.1))
        ask(study)
        with pytest.raises(crashbo.InputError, match=message):
            correct(study, number, **change)
        assert corrections(study) == {}


class TestLostWorkers:
    @pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
    @pytest.mark.filterwarnings("ignore:Heartbeat of storage")
    def test_a_stale_heartbeat_is_a_transient_failure(self, tmp_path: Path) -> None:
        storage = RDBStorage(
            f"sqlite:///{tmp_path}/study.db",
            heartbeat_interval=1,
            grace_period=1,
            heartbeat_stale_trial_callback=lost_worker,
        )
        study = optuna.create_study(storage=storage)
        storage.record_heartbeat(ask(study)._trial_id)

        def is_failed() -> bool:
            optuna.storages.fail_stale_trials(study)
            return last(study).status != "pending"

        wait_until(is_failed, every=0.05)
        record = last(study)
        assert (record.status, record.transient, record.reason) == ("ignored", True, "lost worker")

    def test_what_is_left_running_can_be_released(self, study: optuna.Study) -> None:
        ask(study)
        study.tell(ask(study), 1.0)
        assert release_running(study) == [0]
        assert [record.transient for record in read(study)] == [True, False]
        assert release_running(study) == []


class TestBestTrial:
    def test_it_knows_constraints_and_corrections(self, study: optuna.Study) -> None:
        study.add_trials(
            [
                old(0.1, x=0.1, attrs={"constraint:reach": "violated"}),
                old(0.2, x=0.2, attrs={"constraint:reach": 9.0}),
                old(0.3, x=0.3),
                old(0.4, x=0.4),
            ]
        )
        correct(study, 2, status="crashed")
        assert study.best_trial.number == 0  # what Optuna says
        assert best_trial(study).number == 1
        assert best_trial(study, [crashbo.Constraint("reach", 5.0)]).number == 3
        sampler = crashbo.adapters.optuna.CrashBOSampler(constraints=[crashbo.Constraint("reach", 5.0)])
        assert sampler.best_trial(study).number == 3

    def test_more_may_be_better(self) -> None:
        study = optuna.create_study(direction="maximize")
        study.add_trials([old(0.1, x=0.1), old(0.9, x=0.2)])
        assert best_trial(study).objective == 0.9

    def test_without_a_success_there_is_none(self, study: optuna.Study) -> None:
        study.add_trial(old(x=0.1))
        with pytest.raises(crashbo.InputError, match="`study` must have a trial that succeeded"):
            best_trial(study)

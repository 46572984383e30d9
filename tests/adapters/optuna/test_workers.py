"""Several workers on one study, and workers killed at random moments."""

import random
import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from crashbo.adapters.optuna import read
from tests.adapters.optuna.worker import LONG_GRACE, open_storage, work
from tests.processes import processes, wait_until


def ledger_of(path: Path) -> dict[int, tuple[str, str]]:
    """What was said to be finished, whole lines only: the last may have been cut by the kill."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return {int(number): (state, value) for number, state, value in (line.split() for line in lines)}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("kills", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_workers_lose_nothing(kills: int, tmp_path: Path) -> None:
    url, ledger, ready = f"sqlite:///{tmp_path}/study.db", tmp_path / "ledger", tmp_path / "ledger.ready"
    study = optuna.create_study(study_name="shared", storage=open_storage(url))
    moment = random.Random(kills)
    for _ in range(kills):
        worker = processes().Process(target=work, args=(url, str(ledger), 1000))
        worker.start()
        wait_until(ready.exists)
        ready.unlink()
        time.sleep(moment.uniform(0.0, 1.5))  # the moment of the kill is what is tested
        worker.kill()
        worker.join()
        trials = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
        for number, (state, value) in ledger_of(ledger).items():
            assert (trials[number].state.name, str(trials[number].value)) == (state, value)

    left = [trial for trial in study.get_trials(deepcopy=False) if trial.state == TrialState.RUNNING]
    storage: Any = open_storage(url)
    wait_until(lambda: set(storage._get_stale_trial_ids(study._study_id)) >= {trial._trial_id for trial in left})
    last = processes().Process(target=work, args=(url, str(ledger), len(left) + 3))
    last.start()
    last.join(timeout=300)
    assert last.exitcode == 0

    with sqlite3.connect(tmp_path / "study.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    database.close()
    records = read(study)
    assert [record.number for record in records] == list(range(len(records)))
    assert not [record for record in records if record.status == "pending"]
    lost = {record.number for record in records if record.transient and record.params}
    again = [record.retry_of for record in records if record.retry_of is not None]
    assert sorted(again) == sorted(lost)  # each once
    assert {trial.number for trial in left if trial.params} <= lost
    ended = [record.number for record in records if record.status in ("finished", "crashed")]
    assert len(ended) >= len(ledger_of(ledger)) >= 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_workers_side_by_side_do_not_repeat_each_other(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(study_name="shared", storage=open_storage(url, LONG_GRACE))
    workers = [processes().Process(target=work, args=(url, f"{tmp_path}/{k}", 8, LONG_GRACE)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=600)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    records = read(study)
    assert [record.number for record in records] == list(range(32))
    assert sum(len(ledger_of(tmp_path / str(k))) for k in range(4)) == 32
    points = np.array([[record.params["x"], record.params["y"]] for record in records])
    gaps = np.abs(points[:, None] - points[None]).max(-1) + np.eye(32)
    times = [(trial.datetime_start, trial.datetime_complete) for trial in study.get_trials(deepcopy=False)]
    at_once = [(i, j) for i in range(32) for j in range(i) if times[i][0] < times[j][1] and times[j][0] < times[i][1]]
    assert at_once
    assert min(gaps[i, j] for i, j in at_once) > 1e-6  # never the same point; near ones are the model's choice

"""Gymnasium's Ant under a gait."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from crashbo.errors import InputError
from crashbo.research.problems.ant import FELL, SPACE, Ant

STILL = {
    "frequency": 1.0,
    "hip_swing": 0.0,
    "ankle_lift": 0.0,
    "ankle_lag": 0.0,
    "left_right": 0.0,
    "front_back": 0.0,
    "stiffness": 1.0,
    "damping": 0.05,
}
TROT = STILL | {
    "frequency": 2.5,
    "hip_swing": 0.45,
    "ankle_lift": 0.39,
    "ankle_lag": 0.37,
    "left_right": 0.25,
    "front_back": 0.11,
    "stiffness": 0.75,
    "damping": 0.12,
}


@pytest.fixture(scope="module")
def ant():
    pytest.importorskip("gymnasium")
    pytest.importorskip("mujoco")
    return Ant(duration=1.0)


def test_without_a_swing_it_stands(ant):
    walk = ant.rollout(STILL, 0)
    assert not walk.failed
    assert walk.seconds == pytest.approx(1.0)
    assert walk.distance < 0.2
    assert walk.cost == pytest.approx(-walk.distance / 1.0)


def test_a_trot_covers_ground_and_repeats(ant):
    first, second, other = ant.rollout(TROT, 0), ant.rollout(TROT, 0), ant.rollout(TROT, 1)
    assert first.cost == second.cost != other.cost
    assert first.distance > 0.3


def test_some_gaits_fall(ant):
    walks = [ant.rollout(params, 0) for params in SPACE.sample(12, np.random.default_rng(0))]
    fallen = [walk for walk in walks if walk.failed]
    assert 0 < len(fallen) < 12
    for walk in fallen:
        assert (walk.cost, walk.reason) == (None, FELL)
        assert walk.seconds <= 1.0


def test_the_example_tunes_it(ant, capsys):
    example = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "walking_ant.py"))
    result = example["main"](n_trials=3)
    assert len(result.trials) == 3
    assert "3 trials" in capsys.readouterr().out


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(InputError, match=r"`gymnasium` and `mujoco` must be installed .* pip install 'crashbo\[gym\]'"):
        Ant().rollout(STILL, 0)


def test_a_bad_duration_is_refused():
    with pytest.raises(InputError, match=r"`duration` must lie between 0\.1 and 600 s; got 0\.0"):
        Ant(duration=0.0)

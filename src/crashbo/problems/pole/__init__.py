"""A robot balances a pole: plant, wrong design model, software, safety, tuning problems, MuJoCo twin."""

from crashbo.problems.pole.lqr import SAFE_GAINS, lqr_gains
from crashbo.problems.pole.plant import Plant
from crashbo.problems.pole.rollout import Outcome, Settings, Trajectory
from crashbo.problems.pole.simulation import rollout
from crashbo.problems.pole.tuning import POLES, Evaluation, PoleTuning, Told, repeat

__all__ = [
    "POLES",
    "SAFE_GAINS",
    "Evaluation",
    "Outcome",
    "Plant",
    "PoleTuning",
    "Settings",
    "Told",
    "Trajectory",
    "lqr_gains",
    "repeat",
    "rollout",
]

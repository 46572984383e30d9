"""A robot balances a pole: plant, wrong design model, software, safety, tuning problems, MuJoCo twin."""

from crashbo.research.problems.pole.lqr import SAFE_GAINS, lqr_gains
from crashbo.research.problems.pole.plant import Plant
from crashbo.research.problems.pole.rollout import Outcome, Settings, Trajectory
from crashbo.research.problems.pole.simulation import rollout
from crashbo.research.problems.pole.tuning import POLES, Evaluation, PoleTuning, Told, repeat

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

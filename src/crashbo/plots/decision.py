"""What the optimizer would do next, and the score that makes it do so; the optimizer stays as it is."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from crashbo.optimizer import Optimizer, Suggestion
from crashbo.search import Search

Score = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Decision:
    """The next suggestion and its reasons.

    Attributes:
        suggestion: what `ask` would return now.
        mode: "success" or the acquisition's name; what the models would choose by, also while
            initial points are still due.
        score: log of what is maximised, at `m x d` points of the unit cube.
        unconstrained: the same without the weight of success; None where there is no such weight.
    """

    suggestion: Suggestion
    mode: str
    score: Score
    unconstrained: Score | None

    def normalised(self, points: Tensor, also: Tensor) -> Tensor:
        """The score at `m x d` points, scaled to a maximum of 1 among them and `also`, `k x d`."""
        return _normalised(self.score, points, also)

    def normalised_unconstrained(self, points: Tensor) -> Tensor | None:
        """The unconstrained score at `m x d` points, scaled to a maximum of 1; None if there is none."""
        return None if self.unconstrained is None else _normalised(self.unconstrained, points, points[:0])


@torch.no_grad()
def _normalised(score: Score, points: Tensor, also: Tensor) -> Tensor:
    value = torch.cat([score(chunk) for chunk in torch.cat([points, also]).split(4096)])
    return (value - value.max()).exp()[: len(points)]


def decide(optimizer: Optimizer) -> Decision:
    """Return what the optimizer would do next.

    It is asked in a copy. The score is the very one its search maximises: same models, same seed,
    same pending points.
    """
    search, suggestion = optimizer.search(), optimizer.copy().ask()
    mode = suggestion.why.mode
    if mode in ("initial", "given"):
        _, mode = search.next()
    score, unconstrained = _scores(search, mode)
    return Decision(suggestion, mode, score, unconstrained)


def _scores(search: Search, mode: str) -> tuple[Score, Score | None]:
    if mode in ("success", "cmes") or not search.models.weighted:
        return search.score(mode), None
    gain, objective = search.gain(mode), search.models.objective
    return search.score(mode), lambda x: gain(x, objective.predict(x))

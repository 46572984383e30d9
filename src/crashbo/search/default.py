"""The default strategy: four parts, each a function that can be replaced by another."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from crashbo.model.memory import Memory
from crashbo.model.numbers import NUMBERS, Numbers
from crashbo.model.recipe import average_belief
from crashbo.problem.arrays import Array
from crashbo.problem.history import History
from crashbo.search.design import quasi_random
from crashbo.search.guess import low_and_safe
from crashbo.search.maximise import maximise, with_differences
from crashbo.search.points import fresh, points_to_try
from crashbo.search.score import GainScore
from crashbo.search.strategy import Guess, Score, Suggested


@dataclass(frozen=True)
class DefaultStrategy:
    """Averages over models and pays a price per crash; see `docs/method.md`.

    To change a part, give another one: `DefaultStrategy(scoring=MyScore)`.

    Attributes:
        numbers: the hand-set numbers, which belief, scoring and guessing are given.
        design: `(history)` to a point, `d`, while the initial design goes on; None once the models decide.
        belief: `(history, numbers, memory)` to the models of all outputs, a `Surrogate` with `with_pending`.
        scoring: `(history, models, numbers)` to the score that a suggestion maximises, a `Score`. Pending trials are
            part of the models. A score may have `with_slope` (see `maximise`; else differences are taken), and `points`
            to search from.
        guessing: `(history, models, numbers)` to the best guess.
        memory: what was learned; it saves time and changes no result.
    """

    numbers: Numbers = NUMBERS
    design: Callable[[History], Array | None] = quasi_random
    belief: Callable[[History, Numbers, Memory], Any] = average_belief
    scoring: Callable[[History, Any, Numbers], Score] = GainScore
    guessing: Callable[[History, Any, Numbers], Guess] = low_and_safe
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)

    def with_memory(self, memory: Memory) -> Self:
        """The same strategy, which keeps what it learns there."""
        return replace(self, memory=memory)

    def suggest(self, history: History) -> Suggested:
        """The next point of the design, or that of the highest score."""
        if (point := self.design(history)) is not None:
            return Suggested(point, "initial")
        models = self._planning(history)
        score = self.scoring(history, models, self.numbers)
        slope = getattr(score, "with_slope", None) or with_differences(score)
        points = getattr(score, "points", None)
        points = points_to_try(history) if points is None else points
        found = maximise(score, slope, points, history.space, allowed=lambda X: fresh(history, X))
        return Suggested(found.point, score.mode, found.value, float(models.success(found.point[None])[0]))

    def surrogate(self, history: History) -> Any:
        """The models of all outputs, pending trials aside."""
        return self.belief(history, self.numbers, self.memory)

    def _planning(self, history: History) -> Any:
        """The models with pending trials believed to end as expected."""
        return self.surrogate(history).with_pending(history.pending_points)

    def score(self, history: History) -> Score:
        """The score that the next suggestion maximises, once the design has ended."""
        return self.scoring(history, self._planning(history), self.numbers)

    def guess(self, history: History) -> Guess:
        """The best guess."""
        return self.guessing(history, self.surrogate(history), self.numbers)

"""How the models of all outputs are made of the trials, and the default way: averaged over hyperparameters."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from crashbo.errors import InputError
from crashbo.model.average import Candidates, learn, learning_size, weigh
from crashbo.model.belief import AnyOutput, Averaged, Output
from crashbo.model.block import Block
from crashbo.model.memory import Memory
from crashbo.model.numbers import LABELS, Numbers
from crashbo.model.reasons import Reasons, choose_reasons
from crashbo.problem.history import OBJECTIVE, History

_MadeOutput = TypeVar("_MadeOutput", bound=Output, covariant=True)


class Recipe(Protocol[_MadeOutput]):
    """The steps from trials to the models of one output: pure functions. Equal recipes make equal models."""

    def block(self, history: History, output: str) -> Block | None:
        """The trials of an output; None while nothing was seen of it."""

    def kind(self, block: Block) -> Hashable:
        """Blocks of one kind have the same hyperparameters."""

    def learn(self, history: History, output: str, block: Block) -> Any:
        """Hyperparameters, from as many of the first trials as the schedule says, if they are of the kind of all."""

    def fit(self, history: History, block: Block, learned: Any) -> _MadeOutput:
        """The models, given these."""


def model_outputs(recipe: Recipe[AnyOutput], history: History, memory: Memory) -> Averaged[AnyOutput]:
    """The models of the objective, and of all constraints of which something was seen."""
    if not history.trials:
        raise InputError("`trials` must hold at least one trial before there is a model; got none. Tell one.")
    objective = _model(recipe, history, OBJECTIVE, memory)
    assert objective is not None
    found = {one.name: _model(recipe, history, one.name, memory) for one in history.constraints}
    return Averaged(objective, {name: one for name, one in found.items() if one is not None})


def _model(recipe: Recipe[AnyOutput], history: History, output: str, memory: Memory) -> AnyOutput | None:
    block = recipe.block(history, output)
    if block is None:
        return None

    def once(step: str, given: History, make: Callable[[], Any]) -> Any:
        return memory.once((recipe, step, output), _seen(given), make)

    def make() -> AnyOutput:
        early = history.first(learning_size(len(history.trials)))
        part = recipe.block(early, output)
        if part is None or recipe.kind(part) != recipe.kind(block):
            early, part = history, block
        learned = once("learned", early, lambda: recipe.learn(early, output, part))
        return recipe.fit(history, block, learned)

    return once("models", history, make)


def _seen(history: History) -> Hashable:
    """Everything in a history that models depend on."""
    trials = tuple(
        (tuple(trial.params.items()), trial.objective, tuple(trial.constraints.items()), trial.reason)
        for trial in history.trials
    )
    settings = history.options.crashes, tuple(sorted(history.options.fixed.items()))
    return history.space, history.constraints, history.direction, settings, trials


def output_block(history: History, output: str, *, absorbed: bool) -> Block | None:
    """The trials of one output, None while nothing was seen of it; `absorbed`: a crash is a high value of the cost."""
    points, told, threshold = history.points, history.costs, None
    if output != OBJECTIVE:
        seen = [i for i, trial in enumerate(history.trials) if output in trial.constraints]
        points, told = points[seen], [history.trials[i].constraints[output] for i in seen]
        threshold = next(one.threshold for one in history.constraints if one.name == output)
    if not told:
        return None
    failed = np.array([value is None for value in told])
    ok, bad = np.flatnonzero(~failed), np.flatnonzero(failed)
    standard = output == OBJECTIVE and bool(history.constraints) and not len(bad)  # a GP without limits
    return Block(
        points,
        ok,
        np.array([value for value in told if value is not None]),
        ok[:0] if standard or threshold is not None else ok,  # a value says more than a label on a known limit
        bad,
        np.zeros_like(bad),
        margins=0 if standard else 1,
        self_limited=absorbed or output != OBJECTIVE,
        threshold=threshold,
        fixed=history.options.fixed.get(output),
    )


@dataclass(frozen=True)
class AverageRecipe:
    """Averages over hyperparameters; see `docs/method.md`."""

    numbers: Numbers

    def block(self, history: History, output: str) -> Block | None:
        found = output_block(history, output, absorbed=history.options.crashes == "absorb")
        return None if found is None else found.thinned(LABELS)

    def kind(self, block: Block) -> Hashable:
        return block.margins, bool(len(block.values)), bool(len(block.above))

    def learn(self, history: History, output: str, block: Block) -> tuple[Candidates, Reasons]:
        """Also which named reasons of crashes have margins of their own."""
        told, numbers = _crash_reasons(history), self.numbers
        reasons = choose_reasons(block, told, numbers) if output == OBJECTIVE else Reasons()
        limited = replace(numbers, correlations=((0.0, 1.0),)) if history.options.crashes == "separate" else numbers
        return learn(reasons.split(block, told), limited), reasons

    def fit(self, history: History, block: Block, learned: tuple[Candidates, Reasons]) -> Output:
        candidates, reasons = learned
        placed = reasons.split(block, _crash_reasons(history))
        return Output(weigh(candidates.affordable(len(block.X)), placed), reasons)


def _crash_reasons(history: History) -> list[str]:
    return [trial.reason for trial in history.trials if trial.crashed]


def average_belief(history: History, numbers: Numbers, memory: Memory) -> Averaged[Output]:
    """The models of all outputs, averaged over hyperparameters."""
    return model_outputs(AverageRecipe(numbers), history, memory)

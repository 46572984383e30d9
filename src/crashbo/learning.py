"""When to learn hyperparameters: seldom from scratch, more often from where they are, and kept in between."""

from collections.abc import Callable
from typing import Protocol

from crashbo.models.surrogates import Surrogates

Known = tuple[int, Surrogates]  # models of so many first trials
_EACH, _FULL = 12, 8  # trials up to which every new one is learned from, and from scratch
_MANY, _ENOUGH = 100, 250  # trials to learn hyperparameters from, from scratch and from there on


class Build(Protocol):
    """Builds models of the first `count` trials."""

    def __call__(self, count: int, earlier: Surrogates | None = None, *, relearn: bool = False) -> Surrogates:
        """See `build_surrogates`."""
        ...


class Learning:
    """The models of a growing list of trials, each made once.

    What they are depends on the trials alone, not on when they were asked for: a restored optimizer
    suggests what the uninterrupted one would.
    """

    def __init__(self, build: Build, *, every_time: bool = False) -> None:
        """Begin with no models.

        Args:
            build: makes them.
            every_time: from scratch at every trial (fixed hyperparameters cost little).
        """
        self._build, self._every_time = build, every_time
        self._steps: list[Known] = []  # from scratch; learned from there; kept since

    def models(self, count: int) -> Surrogates:
        """The models of the first `count` trials."""
        sizes = [count] if self._every_time else [*learning_sizes(count), count]
        for step, size in enumerate(sizes):
            if step < len(self._steps) and self._steps[step][0] == size:
                continue
            earlier = self._steps[step - 1] if step else None
            if earlier is not None and earlier[0] == size:
                made = earlier[1]
            else:
                made = self._build(size, None if earlier is None else earlier[1], relearn=step == 1)
            self._steps[step:] = [(size, made)]
        return self._steps[-1][1]

    def adopt(self, other: "Learning", same: Callable[[int], bool]) -> None:
        """Take over models.

        Args:
            other: has them.
            same: whether both have the same so many first trials.
        """
        steps = other._steps
        while steps and not same(steps[-1][0]):
            steps = steps[:-1]
        if steps:
            self._steps = list(steps)

    @property
    def known(self) -> tuple[int, ...]:
        """Of how many first trials there are models."""
        return tuple(size for size, _ in self._steps)


def learning_sizes(count: int) -> tuple[int, int]:
    """How many of the first trials hyperparameters are learned from: with several starts, and from there on.

    The former in steps of a half, up to a hundred: where their valley is shows early. The latter all of 12
    trials, then in steps of a sixth. A few hundred are enough.
    """
    full = _stair(min(count, _MANY), _FULL, 2)
    return full, max(full, _stair(min(count, _ENOUGH), _EACH, 6))


def _stair(count: int, first: int, share: int) -> int:
    """The last of the sizes 1, 2, ... `first`, then each larger by a share of itself, that is at most `count`."""
    size = min(count, first)
    while (larger := size + max(2, size // share)) <= count:
        size = larger
    return size

"""Ask and tell: the optimizer as a pure function of its settings and what it was told."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args, overload

import numpy as np
import torch
from torch import Tensor

from crashbo.durable import write_whole
from crashbo.errors import InputError
from crashbo.learning import Learning
from crashbo.models.surrogates import FixedModel, Surrogates, build_surrogates
from crashbo.outcome import Constraint, Failure, Trial, check_outcome
from crashbo.search import Caution, Options, Search, make_round
from crashbo.space import Space
from crashbo.state import check_state, read_state
from crashbo.threads import few_threads

AcquisitionName = Literal["auto", "cmes", "mes", "mesco", "logei"]
_FORMAT = 1
_LOST = 12  # trials that all crashed


@dataclass(frozen=True)
class Reason:
    """Why a point was suggested.

    Attributes:
        mode: "initial", "given", "success" (no safe point known: look for one), or the acquisition's name.
        value: of the acquisition, in logs; None for initial points.
        success_probability: that nothing fails there; None for initial points.
        thresholds: as estimated then.
        correlation: of crashes and costs as learned then; None where there was nothing to learn it from.
        seconds: the suggestion took.
    """

    mode: str
    value: float | None = None
    success_probability: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    correlation: float | None = None

    def __str__(self) -> str:
        if self.mode in ("initial", "given"):
            return "an initial point" if self.mode == "initial" else "a point you gave"
        aim = "the point most likely to succeed, no safe one being known" if self.mode == "success" else self.mode
        return f"{aim}; success probability {self.success_probability:.2f}"


class Suggestion(dict[str, Any]):
    """Suggested params, a plain dict that also knows its number and its reason."""

    def __init__(self, params: Mapping[str, Any], number: int, why: Reason) -> None:
        super().__init__(params)
        self.number = number
        self.why = why


@dataclass(frozen=True)
class Best:
    """The best guess (`eq:min_cost_cons_boc`).

    Attributes:
        params: where.
        mean, std: of the objective there, as modelled; NaN while no trial has a cost.
        success_probability: that nothing fails there.
        feasible: whether that reaches 1 - delta, crashes that strike at random aside. If not, this is the point most
            likely to succeed.
    """

    params: dict[str, Any]
    mean: float
    std: float
    success_probability: float
    feasible: bool

    def __str__(self) -> str:
        doubt = "" if self.feasible else " No point is safe enough yet: this one is the most likely to succeed."
        values = ", ".join(f"{name} = {_short(value)}" for name, value in self.params.items())
        return f"{values}: {self.mean:.6g} ± {self.std:.2g}, success {self.success_probability:.1%}.{doubt}"


class Optimizer:
    """Suggests trials (`ask`), learns from them (`tell`), and gives the best guess (`best`).

    The same settings, seed and history give the same suggestions, in whatever process.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        *,
        constraints: Sequence[Constraint] = (),
        direction: Literal["minimize", "maximize"] = "minimize",
        acquisition: AcquisitionName = "auto",
        seed: int = 0,
        initial_points: Sequence[Mapping[str, Any]] = (),
        options: Options | None = None,
    ) -> None:
        """Set up; nothing is computed yet.

        Args:
            space: the parameters.
            constraints: outputs beside the objective that must stay below a limit.
            direction: "minimize" or "maximize".
            acquisition: "auto" (mES, and log EI once little is left to gain; mESCO with constraints), "mes",
                "mesco", "cmes" or "logei".
            seed: same seed, same suggestions.
            initial_points: suggested first, in this order.
            options: how to search.
        """
        self.space = space if isinstance(space, Space) else Space(space)
        if isinstance(constraints, (str, Constraint)):
            raise InputError(f"`constraints` must be a list; got {constraints!r}. Put it in brackets.")
        if options is not None and not isinstance(options, Options):
            raise InputError(f"`options` must be crashbo.Options or None; got {options!r}.")
        self.constraints = tuple(_as_constraint(one) for one in constraints)
        names = [one.name for one in self.constraints]
        if len(set(names)) < len(names):
            raise InputError(f"`constraints` must have different names; got {names}.")
        if direction not in ("minimize", "maximize"):
            raise InputError(f"`direction` must be 'minimize' or 'maximize'; got {direction!r}.")
        if acquisition not in get_args(AcquisitionName):
            allowed = ", ".join(map(repr, get_args(AcquisitionName)))
            raise InputError(f"`acquisition` must be one of {allowed}; got {acquisition!r}.")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"`seed` must be an integer >= 0; got {seed!r}.")
        self.direction, self.acquisition, self.seed = direction, acquisition, seed
        self.options = options or Options()
        unknown = [name for name in self.options.fixed if name not in ("objective", *names)]
        if unknown:
            raise InputError(f"`options.fixed` must name outputs; got {unknown}, there are {['objective', *names]}.")
        self.initial_points = [self.space.validate(params) for params in initial_points]
        self._trials: list[Trial] = []
        self._rows: list[np.ndarray] = []  # where they were made, as far as that was asked for; see `_tried`
        self._pending: dict[int, Suggestion] = {}
        self._errors: dict[int, str] = {}  # of pending suggestions that ended in an error of the program itself
        self._asked = 0
        self._learning = Learning(self._build, every_time=bool(self.options.fixed))
        self._round = make_round(self.space)

    # --- what happened -----------------------------------------------------------------------

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All finished trials, in the order told."""
        return tuple(self._trials)

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions that are out: asked, not told."""
        return tuple(self._pending.values())

    @property
    def errors(self) -> tuple[Failure, ...]:
        """Suggestions that ended in an error of the program itself; they stay pending, so as not to come again."""
        return tuple(Failure(dict(self._pending[number]), words) for number, words in self._errors.items())

    @property
    def thresholds(self) -> dict[str, float]:
        """The learned limits of all outputs that have one, in their own units.

        Expected values given all trials; the models themselves work with the most probable ones,
        which hug the worst value seen and are the safer choice (`Reason.thresholds`).
        """
        if not self._trials or not self.space.dimension:
            return {}
        with few_threads(len(self._trials)):
            return self._signed(self.surrogates().expected_thresholds())

    @property
    def crash_relation(self) -> str:
        """What crashes have to do with the objective, in words."""
        if not self._trials or not self.space.dimension:
            return describe_relation(None)
        models = self.surrogates()
        return describe_relation(models.correlation, self.direction, chance=models.chance)

    def _signed(self, thresholds: dict[str, float]) -> dict[str, float]:
        return {name: value * self.sign if name == "objective" else value for name, value in thresholds.items()}

    @property
    def sign(self) -> float:
        """1, or -1 if the objective is maximised: what costs are multiplied with before they are modelled."""
        return 1.0 if self.direction == "minimize" else -1.0

    # --- ask ---------------------------------------------------------------------------------

    @overload
    def ask(self) -> Suggestion: ...
    @overload
    def ask(self, n: int) -> list[Suggestion]: ...
    def ask(self, n: int | None = None) -> Suggestion | list[Suggestion]:
        """Suggest the next trial, or `n` planned together; pending ones are taken into account."""
        if n is None:
            return self._ask_one()
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InputError(f"`n` must be an integer >= 1; got {n!r}.")
        return [self._ask_one() for _ in range(n)]

    def _ask_one(self) -> Suggestion:
        begin = time.perf_counter()
        number = self._asked
        given = self._next_given()
        if given is not None:
            suggestion = Suggestion(given, number, Reason("given"))
        elif self._begins(number):
            suggestion = Suggestion(self._initial_point(number), number, Reason("initial"))
        else:
            with few_threads(len(self._trials)):
                point, mode = self.search().next()
                models = self.surrogates()
                with torch.no_grad():
                    success = float(models.success(point.point.unsqueeze(0)))
            seconds = time.perf_counter() - begin
            why = Reason(mode, point.value, success, self._signed(models.thresholds), seconds, models.correlation)
            suggestion = Suggestion(self.space.decode(point.point.numpy()), number, why)
        self._pending[number] = suggestion
        self._asked += 1
        return suggestion

    def _begins(self, number: int) -> bool:
        """Whether a suggestion is one of the quasi-random design.

        So are the first ones; and all while nothing has succeeded for long: labels of one kind teach the models
        where not to look, which takes them away from the faces as well, and a design leaves nothing out.
        """
        if len(self._trials) + len(self._pending) < self._initial or not self._trials or not self.space.dimension:
            return True
        return len(self._trials) >= _LOST and all(trial.crashed for trial in self._trials)

    def _next_given(self) -> dict[str, Any] | None:
        """The first of the user's initial points that is neither out nor told."""
        seen = [dict(one) for one in self.pending] + [dict(trial.params) for trial in self._trials]
        for point in self.initial_points:
            if point in seen:
                seen.remove(point)
            else:
                return point
        return None

    @property
    def _initial(self) -> int:
        if self.options.initial is not None:
            return self.options.initial
        return max(3, min(10, 2 * self.space.dimension), len(self.initial_points))

    def _initial_point(self, number: int) -> dict[str, Any]:
        if self.options.random_start:
            return self.space.sample(1, np.random.default_rng([self.seed, number]))[0]
        # Powers of two keep the sequence balanced; later ones only extend it.
        count = 2 ** max(3, math.ceil(math.log2(number + 1)))
        points = self.space.sobol(2 * count, self.seed)
        taken = [dict(trial.params) for trial in self._trials if trial.failed] + [dict(one) for one in self.pending]
        fresh = [point for point in points[number:] if point not in taken]
        return fresh[0] if fresh else points[number]

    def search(self) -> Search:
        """The search that the next `ask` makes once the initial points are out: its models and its score."""
        return self._search(int(np.random.SeedSequence([self.seed, self._asked]).generate_state(1)[0]))

    def _search(self, seed: int) -> Search:
        tried = self._tried()
        failed = [index for index, trial in enumerate(self._trials) if trial.failed]
        pending = [self.space.encode(one) for one in self._pending.values()]
        return Search(
            self.surrogates(),
            self._acquisition_name,
            self.options,
            seed,
            self._points(pending),
            tried[failed],
            self._round,
            self._caution(),
            tried[-4:],
            "logei" if self._closes else None,
        )

    def _caution(self) -> Caution:
        """How careful to be.

        What failed before the first success does not count, nor among the initial points, which are not the
        search's choice, nor crashes that strike anywhere.
        """
        models = self.surrogates()
        failures = [trial.failed and not (models.chance and trial.crashed) for trial in self._trials]
        first = max(self._initial, failures.index(False) + 1 if False in failures else len(failures))
        spent = sum(trial.failed for trial in self._trials)
        return self.options.caution(failures, first, correlation=models.correlation, spent=spent)

    def _tried(self) -> Tensor:
        """Where all trials were made, `n x d` in the unit cube."""
        known, trials = self._rows, tuple(self._trials)
        # A new list, so that threads that ask at the same time cannot add a row twice.
        self._rows = rows = known + [self.space.encode(trial.params) for trial in trials[len(known) :]]
        return self._points(rows)

    def _points(self, encoded: Sequence[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.array(encoded).reshape(len(encoded), self.space.dimension))

    @property
    def _acquisition_name(self) -> str:
        if self.acquisition != "auto":
            return self.acquisition
        return "mesco" if self.constraints else "mes"

    @property
    def _closes(self) -> bool:
        """Whether expected improvement takes over in the end, what is left being less than the noise mES knows of.

        Not with constraints, nor where everything is the paper's.
        """
        return self.acquisition == "auto" and not self.constraints and self.options.crash_model != "absorb"

    def surrogates(self) -> Surrogates:
        """The models of all outputs for what has been told so far (costs negated if maximising)."""
        if not self._trials:
            raise InputError("`trials` must hold at least one trial before there is a model; got none. Tell one.")
        return self._learning.models(len(self._trials))

    def _build(self, count: int, earlier: Surrogates | None = None, *, relearn: bool = False) -> Surrogates:
        with few_threads(count):
            return build_surrogates(
                self._tried()[:count],
                self._trials[:count],
                self.constraints,
                sign=self.sign,
                fixed=self.options.fixed,
                crashes=self.options.crash_model,
                earlier=earlier,
                relearn=relearn,
            )

    def copy(self) -> "Optimizer":
        """An optimizer of its own in the same state, which need not learn anew what this one has learned."""
        other = Optimizer.from_json(self.to_json())
        other.adopt(self)
        return other

    def adopt(self, other: "Optimizer") -> None:
        """Take over the models of another optimizer, as far as it made them from these very trials.

        This saves time and changes no result: models that do not belong here are left alone.
        """
        mine, others = (
            (one.space, one.constraints, one.direction, one.options, one._acquisition_name) for one in (self, other)
        )
        if mine != others:
            return
        self._learning.adopt(other._learning, lambda n: _same(self._trials[:n], other._trials[:n], n))

    # --- tell --------------------------------------------------------------------------------

    def tell(self, params: Mapping[str, Any], objective: Any, *, reason: str = "", **constraints: Any) -> Trial:
        """Record a trial, asked for or not.

        Args:
            params: what was tried; a suggestion, or any params in the space.
            objective: its cost, or `crashbo.CRASHED`.
            reason: of a crash, in words.
            constraints: value or `crashbo.VIOLATED` per constraint; may be left out after a crash.

        Raises:
            InputError: and nothing is recorded.
        """
        checked = self.space.validate(params)
        cost, seen = check_outcome(objective, constraints, self.constraints)
        number = self._number_of(params, checked)
        trial = Trial(len(self._trials), checked, cost, seen, str(reason))
        self._trials.append(trial)
        if number is not None:
            self._withdraw(number)
        return trial

    def forget(self, params: Mapping[str, Any]) -> None:
        """Withdraw a suggestion that will not be tried."""
        number = self._number_of(params, dict(params))
        if number is None:
            raise InputError(f"`params` must be a suggestion that is still out; got {dict(params)}.")
        self._withdraw(number)

    def fail(self, params: Mapping[str, Any], error: str) -> None:
        """Record that the program failed on a suggestion: neither a crash nor a result, and not suggested again.

        Args:
            params: the suggestion.
            error: in words.
        """
        number = self._number_of(params, dict(params))
        if number is None:
            raise InputError(f"`params` must be a suggestion that is still out; got {dict(params)}.")
        self._errors[number] = str(error)

    def _withdraw(self, number: int) -> None:
        del self._pending[number]
        self._errors.pop(number, None)

    def _number_of(self, params: Mapping[str, Any], checked: Mapping[str, Any]) -> int | None:
        """Which pending suggestion these params are; None if they were never asked for."""
        number = getattr(params, "number", None)
        if number is None:
            return next((key for key, one in self._pending.items() if dict(one) == checked), None)
        mine = self._pending.get(number)
        if mine is None or (mine is not params and dict(mine) != checked):
            raise InputError(f"`params` must be a suggestion that is still out; got number {number}, told already.")
        return int(number)

    # --- best --------------------------------------------------------------------------------

    def best(self) -> Best:
        """Return the best guess: lowest expected objective where success is likely enough.

        While nothing is safe enough, the point most likely to succeed, and `feasible` says so.
        """
        if not self.space.dimension:
            return self._only_guess()
        with few_threads(len(self._trials)):
            models = self.surrogates()
            point, feasible = self._search(self.seed).best()
            with torch.no_grad():
                mean, deviation = (float(value) for value in models.moments(point))
                success = float(models.success(point))
        if not models.any_stable:
            mean, deviation = math.nan, math.nan
        return Best(self.space.decode(point.numpy()), self.sign * mean, deviation, success, feasible)

    def _only_guess(self) -> Best:
        """The best guess where there is nothing to choose: plain statistics of the trials."""
        if not self._trials:
            raise InputError("`trials` must hold at least one trial before there is a best guess; got none. Tell one.")
        costs = [trial.objective for trial in self._trials if trial.objective is not None]
        success = 1 - sum(trial.failed for trial in self._trials) / len(self._trials)
        mean, deviation = (float(np.mean(costs)), float(np.std(costs))) if costs else (math.nan, math.nan)
        params = dict(self._trials[0].params)
        return Best(params, mean, deviation, success, success >= 1 - self.options.delta)

    # --- state -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The whole state as plain JSON; `from_json` continues exactly where this stands."""
        return {
            "format": _FORMAT,
            "space": self.space.to_json(),
            "constraints": [asdict(one) for one in self.constraints],
            "direction": self.direction,
            "acquisition": self.acquisition,
            "seed": self.seed,
            "initial_points": [dict(point) for point in self.initial_points],
            "options": asdict(self.options),
            "asked": self._asked,
            "trials": [asdict(trial) for trial in self._trials],
            "pending": [
                {"number": one.number, "params": dict(one), "why": asdict(one.why)} for one in self._pending.values()
            ],
            "errors": {str(number): words for number, words in self._errors.items()},
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Optimizer":
        """Restore an optimizer from `to_json`."""
        found = state.get("format") if isinstance(state, Mapping) else None
        if found != _FORMAT:
            raise InputError(f"`state` must be a saved optimizer of format {_FORMAT}; got format {found!r}.")
        check_state(state)
        try:
            return cls._restore(state)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"`state` must be complete; got one with a broken part ({error!r}).") from error

    @classmethod
    def _restore(cls, state: Mapping[str, Any]) -> "Optimizer":
        options = dict(state["options"])
        options["fixed"] = {name: FixedModel(**_tuples(one)) for name, one in options["fixed"].items()}
        optimizer = cls(
            Space.from_json(state["space"]),
            constraints=[Constraint(**one) for one in state["constraints"]],
            direction=state["direction"],
            acquisition=state["acquisition"],
            seed=state["seed"],
            initial_points=state["initial_points"],
            options=Options(**options),
        )
        optimizer._trials = [Trial(**one) for one in state["trials"]]
        optimizer._asked = state["asked"]
        optimizer._pending = {
            one["number"]: Suggestion(one["params"], one["number"], Reason(**one["why"])) for one in state["pending"]
        }
        errors = {int(number): words for number, words in state.get("errors", {}).items()}
        optimizer._errors = {number: words for number, words in errors.items() if number in optimizer._pending}
        return optimizer

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all; when this returns it is on the disk."""
        write_whole(Path(path), json.dumps(self.to_json(), indent=1))

    @classmethod
    def load(cls, path: str | Path) -> "Optimizer":
        """Read a state written by `save`."""
        return cls.from_json(read_state(Path(path)))


def _same(some: Sequence[Trial], others: Sequence[Trial], count: int) -> bool:
    """Whether two lists hold the same `count` trials, for all that a model can tell."""
    pairs = zip(some, others, strict=False)
    same = all((a.params, a.objective, a.constraints) == (b.params, b.objective, b.constraints) for a, b in pairs)
    return len(some) == len(others) == count and same


def describe_relation(correlation: float | None, direction: str = "minimize", *, chance: float = 0.0) -> str:
    """Say in words what crashes have to do with the objective.

    Args:
        correlation: as in `Reason`.
        direction: of the optimization.
        chance: probability that a trial crashes wherever it is made, if crashes have no place.
    """
    if chance:
        return f"Crashes look random: they strike about {chance:.0%} of trials, wherever these are made."
    if correlation is None:
        return "It is not known yet what crashes have to do with the objective."
    bad, good = ("high", "low") if direction == "minimize" else ("low", "high")
    if correlation > 0.8:
        return f"Crashes look like {bad} values of the objective."
    if correlation > 0.4:
        return f"Crashes go with {bad} values of the objective, but not with those alone."
    if correlation < -0.4:
        return f"Crashes lie where the objective is {good}: the best trials are close to them."
    return "Crashes look unrelated to the objective."


def _as_constraint(value: Constraint | str) -> Constraint:
    if isinstance(value, str):
        return Constraint(value)
    if not isinstance(value, Constraint):
        raise InputError(f"`constraints` must hold crashbo.Constraint objects or names; got {value!r}.")
    return value


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)

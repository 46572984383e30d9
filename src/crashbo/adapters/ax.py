"""CrashBO in Ax: a generation node for the Client that learns from failed and abandoned trials.

`configure(client, seed=0)` is all a user of Ax's Client adds. The node keeps nothing but its settings:
every suggestion is a function of them and of the experiment, so that a saved client goes on as it would have.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import Any

from crashbo.adapters._ax_problem import Asked, Output, read_problem
from crashbo.errors import InputError
from crashbo.model.surrogate import Limit
from crashbo.optimizer import Optimizer
from crashbo.problem.history import History
from crashbo.problem.options import Options
from crashbo.problem.outcome import CRASHED, Constraint, why_no_cost
from crashbo.problem.problem import UNKNOWN_SPACE, Problem, strategy_in
from crashbo.problem.suggestion import Best, Reason, Suggestion

try:
    from ax.core.base_trial import BaseTrial, TrialStatus
    from ax.core.data import Data
    from ax.core.experiment import Experiment
    from ax.core.generator_run import GeneratorRun
    from ax.generation_strategy.external_generation_node import ExternalGenerationNode
    from ax.generation_strategy.generation_strategy import GenerationStrategy
    from ax.storage.json_store.decoder import object_from_json
    from ax.storage.json_store.registry import CORE_DECODER_REGISTRY, CORE_ENCODER_REGISTRY
except ImportError as error:
    raise ImportError(
        f"`crashbo.adapters.ax` needs Ax, which cannot be imported here ({error}). "
        "Install it by: pip install 'crashbo[ax]'"
    ) from error

__all__ = ["CrashBONode", "Settings", "best", "configure", "node_of", "register", "thresholds"]

Means = dict[tuple[int, str], dict[str, float]]
_CRASHES = ("FAILED", "ABANDONED", "EARLY_STOPPED")


@dataclass(frozen=True)
class Settings:
    """How CrashBO works within Ax.

    Attributes:
        constraints: metrics that must stay below an unknown limit; NaN means violated. Known limits belong in Ax's own
            outcome constraints.
        seed: the same seed gives the same suggestions on one machine.
        strategy: "default" or "paper".
        acquisition: for the paper's strategy.
        options: how to search.
        crashes: which trial statuses count as crashes, among FAILED, ABANDONED and EARLY_STOPPED.
        transient: a FAILED trial whose reason begins with this word is not learned from and is suggested again.
    """

    constraints: Sequence[Constraint] = ()
    seed: int = 0
    strategy: str = "default"
    acquisition: str = "auto"
    options: Options = field(default_factory=Options)
    crashes: Sequence[str] = ("FAILED", "ABANDONED")
    transient: str = "transient"

    def __post_init__(self) -> None:
        for name in ("constraints", "crashes"):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise InputError(f"`{name}` must be a list; got {value!r}. Put it in brackets.")
        unknown = [status for status in self.crashes if status not in _CRASHES]
        if unknown:
            raise InputError(f"`crashes` must hold names out of {', '.join(_CRASHES)}; got {unknown[0]!r}.")
        if not isinstance(self.transient, str) or not self.transient:
            raise InputError(f"`transient` must be the first word of a reason; got {self.transient!r}.")
        if not isinstance(self.options, Options):
            raise InputError(f"`options` must be crashbo.Options; got {self.options!r}.")
        named = tuple(Constraint(one) if isinstance(one, str) else one for one in self.constraints)
        object.__setattr__(self, "constraints", named)
        if not isinstance(self.strategy, str):
            raise InputError(f"`strategy` must be a name; got {self.strategy!r}. Ax's storage keeps no objects.")
        Problem.of(UNKNOWN_SPACE, constraints=named, **self.search | {"options": replace(self.options, fixed={})})

    @property
    def search(self) -> dict[str, Any]:
        """What of a `Problem` the experiment does not say."""
        return {name: getattr(self, name) for name in ("seed", "strategy", "acquisition", "options")}

    def to_json(self) -> dict[str, Any]:
        """The settings as plain JSON."""
        return asdict(self) | {"crashes": list(self.crashes), "constraints": [asdict(one) for one in self.constraints]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Settings":
        """Restore settings from `to_json`, also of version 0.1."""
        strategy, acquisition = strategy_in(data)
        constraints = [Constraint(**one) for one in data["constraints"]]
        read = {"strategy": strategy, "acquisition": acquisition, "options": Options.from_json(data["options"])}
        return cls(**{**data, **read, "constraints": constraints})


@dataclass(frozen=True)
class _Told:
    """An experiment as the optimizer sees it.

    Attributes:
        asked: space, objective and constraints.
        optimizer: told every finished trial.
        finished: params of the trials it was told.
        running: params of trials that are out.
    """

    asked: Asked
    optimizer: Optimizer
    finished: list[dict[str, Any]]
    running: list[dict[str, Any]]


class CrashBONode(ExternalGenerationNode):
    """An Ax generation node that uses CrashBO; alone, or after other nodes of a generation strategy."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        name: str = "CrashBO",
        transition_criteria: Sequence[Any] | None = None,
        suggested_experiment_status: Any = None,
        exact: Sequence[Sequence[Any]] = (),
    ) -> None:
        """Set up; nothing is computed yet.

        Args:
            settings: of CrashBO.
            name: of the node.
            transition_criteria: of Ax, when to move on to another node.
            suggested_experiment_status: of Ax.
            exact: set when loaded from JSON: the data before Ax rounded it to ten decimals, as rows of
                trial index, arm name, metric name and mean.
        """
        super().__init__(
            name=name,
            should_deduplicate=False,  # a noisy optimum may be measured twice; failed points never are
            transition_criteria=transition_criteria,
            suggested_experiment_status=suggested_experiment_status,
        )
        self.settings = settings or Settings()
        self._exact = {(int(row[0]), str(row[1]), str(row[2])): float(row[3]) for row in exact}
        self._told: _Told | None = None
        self._asked = 0
        self._reasons: list[Reason] = []

    def update_generator_state(self, experiment: Experiment, data: Data) -> None:
        """Read all trials of the experiment; Ax calls this before it asks for candidates."""
        told = _read(experiment, self._means(data), self.settings)
        self._asked = len(experiment.trials)
        if self._told is not None:
            told.optimizer.adopt(self._told.optimizer)
        self._told = replace(told, optimizer=_resumed(told.optimizer, self._asked, []))

    def get_next_candidate(self, pending_parameters: list[Any]) -> dict[str, Any]:
        """Suggest params; those out, and those just suggested, are taken into account."""
        if self._told is None:
            raise InputError("`update_generator_state` must come before `get_next_candidate`; got no experiment.")
        told = self._told = self._with_pending(self._told, pending_parameters)
        suggestion = told.optimizer.ask()
        self._asked += 1
        self._reasons.append(suggestion.why)
        return told.asked.codec.decode(suggestion)

    def _with_pending(self, told: _Told, pending_parameters: Sequence[Mapping[str, Any]]) -> _Told:
        """Make exactly these points pending; of finished trials only what runs again is."""
        pending: list[dict[str, Any]] = []
        for parameters in pending_parameters:
            params = told.asked.codec.encode(parameters)
            if params is not None and (params in told.running or params not in told.finished):
                pending.append(params)
        current = [dict(one) for one in told.optimizer.pending]
        if len(current) == len(pending) and all(one in current for one in pending):
            return told
        return replace(told, optimizer=_resumed(told.optimizer, self._asked, pending))

    def _gen(self, experiment: Experiment, data: Data | None = None, n: int | None = None, **rest: Any) -> GeneratorRun:
        fixed = rest.get("fixed_features")
        if fixed is not None and fixed.parameters:
            raise InputError(
                f"`fixed_parameters` must be left out; got {fixed.parameters}. "
                "Make them fixed parameters of the experiment instead."
            )
        self._reasons = []
        run = super()._gen(experiment=experiment, data=data, n=n, **rest)
        beliefs = [{"why": str(one)} | asdict(one) for one in self._reasons]
        run._gen_metadata = {**(run.gen_metadata or {}), "crashbo": beliefs}
        return run

    def best(self) -> Best:
        """Return the model's best guess for the experiment as it stands."""
        told = self._current()
        found = told.optimizer.best()
        return replace(found, params=told.asked.codec.decode(found.params))

    def thresholds(self) -> dict[str, float]:
        """Return the most probable limits so far, by output, in the units of their metrics."""
        return {name: limit.value for name, limit in self.limits().items()}

    def limits(self) -> dict[str, Limit]:
        """Return the limits so far with their standard deviations, by output, in the units of their metrics."""
        told = self._current()
        signs = {one.name: one.sign for one in told.asked.outputs}
        found = told.optimizer.limits
        return {name: one.times(signs.get(name, 1.0)) for name, one in found.items()}

    def _current(self) -> _Told:
        return _read(self.experiment, self._means(self.experiment.lookup_data()), self.settings)

    def _means(self, data: Data) -> Means:
        """Latest value per trial, arm and metric; exact where Ax's JSON storage rounded it."""
        means: Means = {}
        for trial, arm, metric, mean in _rows(data):
            exact = self._exact.get((trial, arm, metric), mean)
            rounded = math.isclose(mean, exact, rel_tol=1e-12, abs_tol=1e-10)
            means.setdefault((trial, arm), {})[metric] = exact if rounded else mean
        return means

    def to_json(self) -> dict[str, Any]:
        """The node for Ax's JSON storage."""
        experiment = getattr(self._generation_strategy, "_experiment", None)
        means = {} if experiment is None else self._means(experiment.lookup_data())
        rows: list[list[Any]] = [[*key, metric, mean] for key, seen in means.items() for metric, mean in seen.items()]
        return {
            "__type": type(self).__name__,
            "name": self.name,
            "settings": self.settings.to_json(),
            "transition_criteria": list(self.transition_criteria),
            "suggested_experiment_status": self.suggested_experiment_status,
            "exact": [row for row in rows if math.isfinite(row[-1])],
        }

    @classmethod
    def deserialize_init_args(
        cls, args: dict[str, Any], decoder_registry: Any = None, class_decoder_registry: Any = None
    ) -> dict[str, Any]:
        """Read what `to_json` wrote; Ax calls this on loading."""
        registries = {"decoder_registry": decoder_registry or CORE_DECODER_REGISTRY}
        if class_decoder_registry is not None:
            registries["class_decoder_registry"] = class_decoder_registry
        return {
            "settings": Settings.from_json(args["settings"]),
            "name": args["name"],
            "transition_criteria": object_from_json(args["transition_criteria"], **registries),
            "suggested_experiment_status": object_from_json(args["suggested_experiment_status"], **registries),
            "exact": args["exact"],
        }


def configure(client: Any, **settings: Any) -> CrashBONode:
    """Let CrashBO choose the trials of an Ax Client.

    Args:
        client: after `configure_experiment` and `configure_optimization`.
        settings: of `Settings`: constraints, seed, strategy, acquisition, options, crashes, transient.

    Returns:
        The node, which knows the best guess and the thresholds.

    Raises:
        InputError: if the experiment holds something CrashBO cannot do.
    """
    node = CrashBONode(Settings(**settings))
    if client._experiment.optimization_config is None:
        raise InputError("`client` must have an objective; got none. Call `configure_optimization` first.")
    _read(client._experiment, {}, node.settings)
    client.set_generation_strategy(GenerationStrategy(name=node.name, nodes=[node]))
    return node


def node_of(client: Any) -> CrashBONode:
    """Return the CrashBO node of a client, after loading it for example."""
    strategy = client._maybe_generation_strategy
    nodes = [] if strategy is None else [one for one in strategy._nodes if isinstance(one, CrashBONode)]
    if not nodes:
        raise InputError("`client` must be set up by `configure`; got one without a CrashBO node.")
    return nodes[0]


def best(client: Any) -> Best:
    """Return CrashBO's best guess for a client's experiment."""
    return node_of(client).best()


def thresholds(client: Any) -> dict[str, float]:
    """Return the limits CrashBO has learned for a client's experiment."""
    return node_of(client).thresholds()


def register() -> None:
    """Make Ax's JSON storage know the node; done once on import."""
    CORE_ENCODER_REGISTRY[CrashBONode] = CrashBONode.to_json
    CORE_DECODER_REGISTRY[CrashBONode.__name__] = CrashBONode


def _rows(data: Data) -> Any:
    """The latest data as trial index, arm name, metric name and mean."""
    df = data.df
    columns = (df["trial_index"].astype(int), df["arm_name"], df["metric_name"], df["mean"].astype(float))
    return zip(*(column.tolist() for column in columns), strict=True)


def _read(experiment: Experiment, means: Means, settings: Settings) -> _Told:
    """Tell an optimizer every trial of the experiment, in the order of their indices."""
    asked = read_problem(experiment, settings.constraints)
    outcomes = list(_outcomes(experiment, means, asked, settings))
    constraints = [Constraint(one.name, one.threshold) for one in asked.outputs]
    problem = Problem.of(asked.codec.space, constraints=constraints, direction=asked.direction, **settings.search)
    again = _unique([one.params for one in outcomes if one.kind == "again"])
    optimizer = Optimizer.restore(reduce(History.with_initial_point, again, History(problem)))
    told = [one for one in outcomes if one.kind == "told"]
    for one in told:
        optimizer.tell(one.params, one.objective, reason=one.reason, **one.constraints)
    running = [one.params for one in outcomes if one.kind == "running"]
    return _Told(asked, optimizer, [one.params for one in told], running)


@dataclass(frozen=True)
class _Outcome:
    """What came of one arm: "told", "running", or "again" (a transient failure)."""

    kind: str
    params: dict[str, Any]
    objective: Any = None
    constraints: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


def _outcomes(experiment: Experiment, means: Means, asked: Asked, settings: Settings) -> Any:
    for index, trial in sorted(experiment.trials.items()):
        for arm in trial.arms:
            params = asked.codec.encode(arm.parameters)
            if params is not None:  # outside the space, attached by hand: nothing to learn from it there
                yield from _outcome(trial, params, means.get((index, arm.name), {}), asked, settings)


def _outcome(
    trial: BaseTrial, params: dict[str, Any], seen: Mapping[str, float], asked: Asked, settings: Settings
) -> Any:
    """One outcome, or none where the trial says nothing."""
    status, reason = trial.status, str(trial.status_reason or "")
    values = {one.name: one.value(seen) for one in asked.outputs}
    labelled = {name: value for name, value in values.items() if value is not None}
    if status in (TrialStatus.CANDIDATE, TrialStatus.STAGED, TrialStatus.RUNNING):
        yield _Outcome("running", params)
    elif status == TrialStatus.FAILED and reason.lower().startswith(settings.transient.lower()):
        yield _Outcome("again", params)
    elif status.name in settings.crashes:
        yield _Outcome("told", params, CRASHED, labelled, reason)
    elif status in (TrialStatus.COMPLETED, TrialStatus.EARLY_STOPPED):
        cost = asked.objective.value(seen)
        if cost is None:
            return  # no cost yet: Ax counts it among the pending ones
        if why_no_cost(cost) is None:
            _check_seen(trial.index, asked.outputs, values)
        yield _Outcome("told", params, cost, labelled)


def _check_seen(index: int, outputs: Sequence[Output], values: Mapping[str, float | None]) -> None:
    for one in outputs:
        if values[one.name] is None:
            metrics = ", ".join(name for name, _ in one.weights)
            raise InputError(
                f"`{metrics}` must be told with the cost of trial {index}; got nothing. "
                "Attach its value, or NaN where it was violated."
            )


def _resumed(optimizer: Optimizer, asked: int, pending: Sequence[Mapping[str, Any]]) -> Optimizer:
    """The same optimizer after so many suggestions, of which these are out."""
    first = optimizer.history.next_number
    out = tuple(Suggestion(params, first + i, Reason("given")) for i, params in enumerate(pending))
    resumed = Optimizer.restore(replace(optimizer.history, pending=out, asked=max(asked, len(out))))
    resumed.adopt(optimizer)
    return resumed


def _unique(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [point for n, point in enumerate(points) if point not in points[:n]]


register()

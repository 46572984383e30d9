"""CrashBO in Ray Tune: a search algorithm that learns from crashed trials and tells them from lost workers.

```
search = CrashBOSearch(metric="cost", mode="min", seed=0)
tuner = tune.Tuner(
    search.crashing(experiment),
    param_space={"kp": tune.uniform(0, 10)},
    tune_config=tune.TuneConfig(search_alg=search, num_samples=30),
)
```
"""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from crashbo.errors import InputError
from crashbo.problem.outcome import CRASHED
from crashbo.problem.space import Space

try:
    from ray.tune.search import Searcher
    from ray.tune.utils.util import flatten_dict, unflatten_dict

    from crashbo.adapters._ray_space import as_space, to_space
    from crashbo.adapters._ray_trainable import wrap
except ImportError as error:
    raise ImportError(
        f"`crashbo.adapters.ray` needs Ray Tune, which cannot be imported here ({error}). "
        "Install it by: pip install 'crashbo[ray]'"
    ) from error

if TYPE_CHECKING:
    from crashbo.optimizer import Optimizer
    from crashbo.problem.suggestion import Best

__all__ = ["CrashBOSearch", "crashing", "to_space"]

logger = logging.getLogger(__name__)
_FORMAT = 1


def crashing(trainable: Any, metric: str, *, transient: Sequence[type[BaseException]] = ()) -> Any:
    """Wrap a trainable so that every exception in it is reported as a crash, with its reason and partial results.

    What still fails in Ray is then a lost worker, or one of the `transient` exceptions. Use
    `CrashBOSearch(errors="transient")` with it; `CrashBOSearch.crashing` does both.

    Args:
        trainable: a function or class trainable.
        metric: name of the cost that it reports; the cost is NaN after a crash.
        transient: exceptions that are not crashes, such as a lost connection.
    """
    if not metric or not isinstance(metric, str):
        raise InputError(f"`metric` must be the name of the cost; got {metric!r}.")
    if not callable(trainable):
        raise InputError(f"`trainable` must be a function or a Trainable class; got {trainable!r}.")
    return wrap(trainable, metric, transient)


class CrashBOSearch(Searcher):
    """A search algorithm for Ray Tune; use it alone or in a `ConcurrencyLimiter`.

    A cost of NaN or infinity, or no cost at all, is a crash; so is an exception, see `crashing`. Constraints are
    metrics of the last result, by name; NaN, "violated" or `crashbo.VIOLATED` mean that one was violated.
    """

    CKPT_FILE_TMPL = "searcher-state-{}.json"

    def __init__(
        self,
        space: Space | Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        points_to_evaluate: Sequence[Mapping[str, Any]] = (),
        errors: Literal["crash", "transient"] = "crash",
        retries: int = 2,
        **settings: Any,
    ) -> None:
        """Set up; nothing is computed yet.

        Args:
            space: a `crashbo.Space` or a Tune search space; None: the `param_space` of the Tuner.
            metric: name of the cost; None: as in the TuneConfig.
            mode: "min" or "max"; None: as in the TuneConfig.
            points_to_evaluate: configs to try first.
            errors: what a trial counts as that Ray reports as errored: a "crash", or "transient" (nothing is learned,
                and it is suggested again).
            retries: how often a transient failure is suggested again before it counts as a crash.
            settings: settings of `crashbo.Optimizer`: constraints, seed, strategy, acquisition, options.
        """
        if isinstance(metric, (list, tuple)) or isinstance(mode, (list, tuple)):
            raise InputError(f"`metric` must be one name; got {metric!r}. CrashBO has no multi-objective search.")
        if mode not in (None, "min", "max"):
            raise InputError(f"`mode` must be 'min' or 'max'; got {mode!r}.")
        if errors not in ("crash", "transient"):
            raise InputError(f"`errors` must be 'crash' or 'transient'; got {errors!r}.")
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise InputError(f"`retries` must be an integer >= 0; got {retries!r}.")
        super().__init__(metric=metric, mode=mode)
        self._metric: str | None = metric
        self._mode: str | None = mode
        self.errors, self.retries = errors, retries
        self._settings = settings
        self._points = [flatten_dict(dict(point)) for point in points_to_evaluate]
        self._space = None if space is None else as_space(space)
        self._optimizer: Optimizer | None = None
        self._live: dict[str, tuple[int, dict[str, Any]]] = {}  # by trial id, until told
        self._losses: list[dict[str, Any]] = []
        self._refused: dict[str, str] = {}  # results that could not be understood, by trial id
        if self._space is not None and metric and mode:
            self._start()

    @property
    def optimizer(self) -> "Optimizer":
        """The optimizer, with its trials, limits and models."""
        return self._start()

    def best(self) -> "Best":
        """Return the model's best guess, with params as a Tune config."""
        found = self.optimizer.best()
        return replace(found, params=unflatten_dict(found.params))

    def crashing(self, trainable: Any, *, transient: Sequence[type[BaseException]] = ()) -> Any:
        """Wrap a trainable like `crashing`, and count trials that still fail in Ray as transient.

        Raises:
            InputError: if the search does not know its metric yet.
        """
        if not self.metric:
            raise InputError("`metric` must be known to wrap a trainable; got none. Give it to CrashBOSearch.")
        self.errors = "transient"
        return crashing(trainable, self.metric, transient=transient)

    def _start(self) -> "Optimizer":
        """Return the optimizer, built when space, metric and mode are known."""
        if self._optimizer is None:
            from crashbo.optimizer import Optimizer

            if self._space is None:
                raise InputError("`param_space` must hold something to search; got none. Use tune.uniform and others.")
            if not self.metric or not self.mode:
                raise InputError(f"`metric` and `mode` must be given; got {self.metric!r} and {self.mode!r}.")
            self._optimizer = Optimizer(
                self._space,
                direction="minimize" if self.mode == "min" else "maximize",
                initial_points=self._points,
                **self._settings,
            )
        return self._optimizer

    # --- what Ray calls ----------------------------------------------------------------------

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Take space, metric and mode from the Tuner; False if there is another space already."""
        space = to_space(config)
        if space is not None and self._space is not None and space != self._space:
            return False
        for name, old, new in (("metric", self._metric, metric), ("mode", self._mode, mode)):
            if old and new and old != new:
                raise InputError(f"`{name}` must be the same in CrashBOSearch and TuneConfig; got {old!r} and {new!r}.")
        self._metric, self._mode = metric or self._metric, mode or self._mode
        self._space = space or self._space
        self._start()
        return True

    def suggest(self, trial_id: str) -> dict[str, Any]:
        """Suggest the config of the next trial; trials under way are taken into account."""
        for trial, problem in self._refused.items():
            raise InputError(f"Trial {trial}: {problem}")
        suggestion = self._start().ask()
        self._live[trial_id] = (suggestion.number, dict(suggestion))
        return dict(unflatten_dict(dict(suggestion)))

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Learn from a finished trial; withdraw the suggestion of one that was stopped before it said anything."""
        if trial_id not in self._live:
            logger.warning("Trial %s is not known to be under way; its result is not learned from.", trial_id)
        elif trial_id in self._refused:
            self._forget(trial_id)
        elif error:
            self._on_error(trial_id)
        elif result is not None and (self.metric in result or result.get("done")):
            self._tell(trial_id, result)
        else:
            self._forget(trial_id)
            del self._live[trial_id]

    def add_evaluated_point(
        self,
        parameters: Mapping[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Learn from a trial made elsewhere; needs the space, and no constraints."""
        optimizer = self._start()
        params = flatten_dict(dict(parameters))
        told = {name: params[name] for name in optimizer.space if name in params}
        optimizer.tell(told, CRASHED if error else value)

    # --- outcomes ----------------------------------------------------------------------------

    def _tell(self, trial_id: str, result: Mapping[str, Any]) -> None:
        optimizer = self._start()
        names = [one.name for one in optimizer.constraints if one.name in result]
        values = {name: result[name] for name in names}
        crash = result.get("crash")
        cost, reason = (CRASHED, crash) if isinstance(crash, str) else (result.get(self.metric), "")
        try:
            optimizer.tell(self._target(trial_id), cost, reason=reason, **values)
        except InputError as error:
            # Ray catches errors of searchers and calls the trial errored: remember this one, and stop at `suggest`.
            self._refused[trial_id] = str(error)
            raise
        del self._live[trial_id]

    def _on_error(self, trial_id: str) -> None:
        """A trial errored in Ray: it crashed, or its worker was lost."""
        params = self._live[trial_id][1]
        self._losses.append(params)
        lost = self._losses.count(params)
        if self.errors == "crash" or lost > self.retries:
            reason = "error" if self.errors == "crash" else f"worker lost {lost} times"
            self._start().tell(self._target(trial_id), CRASHED, reason=reason)
            del self._live[trial_id]
            return
        self._forget(trial_id)  # yet remembered, in case Ray resumes it
        if params not in self._start().initial_points:
            self._start().add_initial_point(params)

    def _target(self, trial_id: str) -> Mapping[str, Any]:
        """The suggestion a trial was, if it is still out, else its params."""
        number, params = self._live[trial_id]
        return next((one for one in self._start().pending if one.number == number), params)

    def _forget(self, trial_id: str) -> None:
        target = self._target(trial_id)
        if hasattr(target, "number"):
            self._start().forget(target)

    # --- state -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The whole state as plain JSON."""
        return {
            "format": _FORMAT,
            "metric": self._metric,
            "mode": self._mode,
            "errors": self.errors,
            "retries": self.retries,
            "live": {trial: list(entry) for trial, entry in self._live.items()},
            "losses": self._losses,
            "optimizer": None if self._optimizer is None else self._optimizer.to_json(),
        }

    def save(self, checkpoint_path: str) -> None:
        """Write the state to a file, whole or not at all."""
        target = Path(checkpoint_path)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        draft.write_text(json.dumps(self.to_json()))
        draft.replace(target)

    def restore(self, checkpoint_path: str) -> None:
        """Go on from a file written by `save`."""
        try:
            state = json.loads(Path(checkpoint_path).read_text())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"`checkpoint_path` must be written by `save`; {checkpoint_path} is not JSON ({error})."
            ) from error
        self._load(state)

    def _load(self, state: Mapping[str, Any]) -> None:
        from crashbo.optimizer import Optimizer

        if state.get("format") != _FORMAT:
            raise InputError(f"`state` must be a saved search of format {_FORMAT}; got {state.get('format')!r}.")
        self._metric, self._mode = state["metric"], state["mode"]
        self.errors, self.retries = state["errors"], state["retries"]
        self._live = {trial: (number, params) for trial, (number, params) in state["live"].items()}
        self._losses, self._refused = list(state["losses"]), {}  # whoever goes on has mended what was refused
        if state["optimizer"] is not None:
            strategy = self._settings.get("strategy", "default")
            own = None if isinstance(strategy, str) else strategy
            self._optimizer = Optimizer.from_json(state["optimizer"], strategy=own)
            self._space = self._optimizer.space

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_optimizer": None, "_saved": self.to_json()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state.pop("_saved")
        self.__dict__.update(state)
        self._load(saved)

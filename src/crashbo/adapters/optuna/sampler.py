"""An Optuna sampler that learns from failed trials."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from crashbo.adapters.optuna.branches import choose, find_branch
from crashbo.adapters.optuna.history import make_optimizer, settings_in
from crashbo.adapters.optuna.internals import set_system_attribute, study_attributes, trial_id
from crashbo.adapters.optuna.offers import Offer, ask, beliefs, rivals, skipped, within
from crashbo.adapters.optuna.outputs import outputs_of
from crashbo.adapters.optuna.paths import Path, find_paths, heard, next_path, relative_space, settings_for
from crashbo.adapters.optuna.records import (
    PRUNED_CHOICES,
    RETRY_OF,
    SUGGESTION,
    Learn,
    Record,
    best_trial,
    read,
    worth_another_try,
)
from crashbo.adapters.optuna.space import (
    Distributions,
    Translation,
    declared,
    declared_constraints,
    given_space,
    infer,
    infer_largest,
    translate,
)
from crashbo.adapters.optuna.transactions import writer
from crashbo.errors import InputError, NumericalError
from crashbo.optimizer import Optimizer
from crashbo.problem.options import Options
from crashbo.problem.outcome import Constraint
from crashbo.problem.problem import UNKNOWN_SPACE, Problem
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Best, Reason, Suggestion
from crashbo.search.strategy import Strategy

_ROUNDS = 5  # attempts to avoid what another worker suggested at the same moment
_logger = optuna.logging.get_logger(__name__)


class CrashBOSampler(BaseSampler):
    """An Optuna sampler that learns from failed trials.

    Use it as `optuna.create_study(sampler=CrashBOSampler())`; nothing else changes. A suggestion depends only on
    the seed, the trials in the storage and the number of the trial. So a study resumed in another process on
    the same machine continues as if it had never stopped, and any number of workers may share it.
    """

    def __init__(
        self,
        *,
        constraints: Sequence[Constraint] = (),
        seed: int | None = None,
        strategy: str | Strategy = "default",
        acquisition: str = "auto",
        options: Options | None = None,
        learn_from: Learn = True,
        prune_as: str = "estimate",
        independent_sampler: BaseSampler | None = None,
        space: Space | Mapping[str, BaseDistribution] | None = None,
    ) -> None:
        """Set up; nothing is read yet.

        Args:
            constraints: outputs that must stay below a limit, with values written by `report`. Only needed
                for known limits: an output that is reported but not declared has an unknown limit.
            seed: the same seed gives the same suggestions on one machine; None: a random seed.
            strategy: "default", "paper", or an object of your own; see `crashbo.Optimizer`.
            acquisition: for the paper's strategy; see `crashbo.Optimizer`.
            options: how to search; see `crashbo.Options`.
            learn_from: which failed trials are crashes: all (True), none (False), or those for which this
                function of the `FrozenTrial` returns True.
            prune_as: what a pruned trial counts as: an "estimate" of its final cost (from how finished trials went on
                after that step), its last "value" as its cost, a "crash", or nothing ("ignore": then the
                same point may be suggested again and again).
            independent_sampler: for parameters that not all trials have; None: models choose them too.
            space: the parameters if known beforehand, as Optuna's distributions by name or as a `crashbo.Space`, whose
                constraints all suggestions satisfy; then the first trial is quasi-random too. None: the parameters
                of the trials so far.
        """
        if prune_as not in PRUNED_CHOICES:
            raise InputError(f"`prune_as` must be one of {list(PRUNED_CHOICES)}; got {prune_as!r}.")
        if not isinstance(learn_from, bool) and not callable(learn_from):
            raise InputError(f"`learn_from` must be True, False or a function of a FrozenTrial; got {learn_from!r}.")
        self._settings = Problem.of(
            UNKNOWN_SPACE,
            constraints=constraints,
            strategy=strategy,
            acquisition=acquisition,
            seed=seed,
            options=options,
        )
        self._learn_from = learn_from
        self._prune_as = prune_as
        self._independent_sampler = independent_sampler
        self._space, self._rules = given_space(space)
        self._lock = threading.RLock()
        self._last: Optimizer | None = None
        self._plan: tuple[int, Mapping[str, Any]] = (-1, {})  # for parameters that not all trials share, by trial

    @classmethod
    def from_study(cls, study: optuna.Study, *, n_trials: int | None = None, **others: Any) -> "CrashBOSampler":
        """Return the sampler with the settings that `crashbo new` wrote into a study.

        Args:
            study: a study made by `crashbo new`.
            n_trials: how many trials the study will have, if its options do not say.
            others: `learn_from`, `prune_as`, `independent_sampler` and `space`.
        """
        found = settings_in(study_attributes(study))
        options = replace(found.options, n_trials=found.options.n_trials or n_trials)
        return cls(
            constraints=found.constraints,
            seed=found.seed,
            strategy=found.strategy,
            acquisition=found.acquisition,
            options=options,
            **others,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_last", "_plan")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.RLock(), _last=None, _plan=(-1, {}))

    def reseed_rng(self) -> None:
        """Reseed the independent sampler only: suggestions already differ by the number of the trial."""
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    # --- what the model knows ------------------------------------------------------------------

    def optimizer(self, study: optuna.Study) -> Optimizer:
        """Return a `crashbo.Optimizer` that has seen all trials, for limits and models.

        Raises:
            InputError: if the study has no parameters yet.
        """
        records = self._read(study)
        return self._optimizer(study, records, self._translation(study, records), len(records))

    def best_trial(self, study: optuna.Study) -> Record:
        """Return the best trial that succeeded, with corrections applied.

        `study.best_trial` knows neither the constraints of `report` nor what `correct` changed: it may name a trial
        that violated a limit, or whose value was wrong.

        Raises:
            InputError: if no trial has succeeded.
        """
        return best_trial(study, self._settings.constraints)

    def best(self, study: optuna.Study) -> Best:
        """Return the best guess of the model; `study.best_trial` is the best trial instead.

        Raises:
            InputError: if no trial has ended yet.
        """
        records = self._read(study)
        translation = self._translation(study, records)
        best = self._optimizer(study, records, translation, len(records)).best()
        return replace(best, params=translation.outward(best.params))

    def _translation(self, study: optuna.Study, records: Sequence[Record]) -> Translation:
        attributes = study_attributes(study)
        space = self._declared(attributes) or infer(records) or infer_largest(records)
        if not space:
            raise InputError("`study` must have a trial with parameters first; got none. Run one.")
        return self._translated(attributes, space)

    def _translated(self, attributes: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> Translation:
        return translate(space, self._rules if self._space else declared_constraints(attributes))

    def _declared(self, attributes: Mapping[str, Any]) -> Distributions:
        return self._space or declared(attributes)

    def _read(self, study: optuna.Study) -> list[Record]:
        return read(study, learn_from=self._learn_from, pruned=self._prune_as)

    def _optimizer(
        self,
        study: optuna.Study,
        records: Sequence[Record],
        translation: Translation,
        number: int,
        settings: Problem | None = None,
    ) -> Optimizer:
        maximize = study.direction == StudyDirection.MAXIMIZE
        optimizer = make_optimizer(records, translation, settings or self._settings, maximize=maximize, number=number)
        if self._last is not None:
            optimizer.adopt(self._last)
        self._last = optimizer  # its models are those of most trials that the next one will know
        return optimizer

    # --- Optuna's interface ----------------------------------------------------------------------

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Distributions:
        """Return the parameters of the trials so far, including crashed ones, or those declared for the study.

        With an `independent_sampler`, only those that all trials share.
        """
        self._refuse_many_objectives(study)
        known = relative_space if self._independent_sampler is None else infer
        return self._declared(study_attributes(study)) or known(self._others(study, trial))

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest all parameters together that the trial is expected to have."""
        self._refuse_many_objectives(study)
        attributes = study_attributes(study)
        translation = self._translated(attributes, search_space) if search_space else None
        is_declared = bool(self._declared(attributes))
        with self._lock:
            records, claimed, skip = self._others(study, trial), False, 0
            for _ in range(_ROUNDS):
                offer = self._offer(study, trial, records, translation, skip, is_declared)
                self._publish(study, trial, offer, translation, claimed)
                claimed = offer.retry_of is not None
                known, records = records, self._others(study, trial)
                same = rivals(offer, known, records)
                if not same:
                    break
                skip = sum(rival.number < trial.number for rival in same)
            marks = {f"crashbo:{name}": value for name, value in offer.beliefs.items()}
            writer(study).mark(trial_id(trial), marks)
            return dict(offer.params)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Suggest one parameter that the trial was not expected to have, by a model of the trials that have it.

        The model chooses all parameters that those trials share at once. While there are too few such trials, the
        value is random. An `independent_sampler` given by the user takes precedence.
        """
        self._refuse_many_objectives(study)
        again = trial.system_attrs.get(RETRY_OF)
        if again is not None:
            past = {record.number: record.params for record in self._read(study)}.get(again, {})
            if param_name in within(past, {param_name: param_distribution}):
                return past[param_name]
        sampler = self._independent_sampler
        if sampler is None:
            planned = self._planned(study, trial, param_name, param_distribution)
            if param_name in planned:
                return planned[param_name]
            state = np.random.SeedSequence([self._settings.seed, trial.number, *param_name.encode()])
            sampler = RandomSampler(seed=int(state.generate_state(1)[0]))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _planned(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Mapping[str, Any]:
        """What a model says about a parameter that not all trials share; empty if there is none."""
        with self._lock:
            number, plan = self._plan
            if number == trial.number and name in within(plan, {name: distribution}):
                return plan
            suggestion = trial.system_attrs.get(SUGGESTION, {})
            found = find_branch(self._others(study, trial), name, distribution, trial.params, suggestion)
            if found is None or not found.enough:
                return {}
            maximize = study.direction == StudyDirection.MAXIMIZE
            try:
                plan = choose(found, self._settings, maximize=maximize, number=trial.number)
            except NumericalError as error:
                _logger.warning(f"The model failed ({error}); {name!r} is random.")
                return {}
            self._plan = trial.number, plan
            return plan

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Call the independent sampler."""
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: Any, values: Any) -> None:
        """Call the independent sampler. Nothing is learned here: the trials are read from the storage."""
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def _refuse_many_objectives(self, study: optuna.Study) -> None:
        if len(study.directions) != 1:
            raise InputError(
                f"`study` must have one objective; got {len(study.directions)}. Combine them into one cost, "
                "or make some of them constraints."
            )

    # --- one suggestion --------------------------------------------------------------------------

    def _others(self, study: optuna.Study, trial: FrozenTrial) -> list[Record]:
        return [record for record in self._read(study) if record.number != trial.number]

    def _offer(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        records: Sequence[Record],
        translation: Translation | None,
        skip: int,
        is_declared: bool,
    ) -> Offer:
        """What to try: what the user enqueued, else a transient trial again, else what the model says.

        Workers that had the same idea all drop it; each leaves the next `skip` ideas to those before it, lest
        they meet again.
        """
        given = trial.system_attrs.get("fixed_params", {})
        space = {} if translation is None else translation.distributions
        branches = [] if is_declared else find_paths(records, space)
        fixed = within(given, space)
        fitting = [one for one in branches if one.fits(fixed)] or branches or ([translation] if translation else [])
        if given and (not fitting or any(len(fixed) == len(one.distributions) for one in fitting)):
            return Offer(fixed, beliefs(Reason("given")))
        again = None if given else worth_another_try(records)
        if again is not None:
            why = f"another try of trial {again.number}, whose failure was transient"
            return Offer(within(again.params, space), {"mode": "retry", "why": why}, again.number)
        if translation is None:
            return Offer({}, {"mode": "independent", "why": "no parameters are known yet"})

        def path(translation: Translation) -> Path:
            settings = settings_for(self._settings, records, translation) if branches else self._settings
            known = heard(records, translation) if branches else records
            optimizer = self._optimizer(study, known, translation, trial.number, settings)
            return Path(translation, optimizer.with_pending(skipped(records, translation)))

        def last(optimizer: Optimizer) -> Suggestion:
            return [ask(optimizer) for _ in range(skip + 1)][-1]

        chosen, suggestion = next_path([path(one) for one in fitting], last)
        params = chosen.translation.outward(suggestion) | fixed
        named = outputs_of(records, self._settings.constraints).named
        return Offer(params, beliefs(suggestion.why, named), translation=chosen.translation)

    def _publish(
        self, study: optuna.Study, trial: FrozenTrial, offer: Offer, translation: Translation | None, claimed: bool
    ) -> None:
        """Let other workers see the whole suggestion at once: Optuna stores params one by one, later."""

        def write(key: str, value: Any) -> None:
            set_system_attribute(study, trial, key, value)

        if claimed or offer.retry_of is not None:  # a claim may have to be taken back
            write(RETRY_OF, offer.retry_of)
        if translation is not None:
            write(SUGGESTION, translation.pack(offer.params))

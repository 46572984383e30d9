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
from crashbo.adapters.optuna.codec import PRUNED_CHOICES, RETRY_OF, SUGGESTION, Learn, Record
from crashbo.adapters.optuna.history import make_optimizer, settings_in
from crashbo.adapters.optuna.internals import all_trials, set_system_attribute, study_attributes, trial_id
from crashbo.adapters.optuna.offers import Fit, Offer, Turn, given_for, next_offer, queue, rivals
from crashbo.adapters.optuna.paths import relative_space
from crashbo.adapters.optuna.records import Reading, best_trial
from crashbo.adapters.optuna.space import (
    Distributions,
    Translation,
    declared,
    given_space,
    infer,
    infer_largest,
    translate,
    within,
)
from crashbo.adapters.optuna.transactions import writer
from crashbo.errors import InputError, NumericalError
from crashbo.optimizer import Optimizer
from crashbo.problem.options import Options
from crashbo.problem.outcome import Constraint
from crashbo.problem.problem import UNKNOWN_SPACE, Problem
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Best
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
        self._given = given_space(space)
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
        records = self._reading(study).read()
        return self._fit(study, len(records))(records, self._translation(study, records), self._settings, ())

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
        records = self._reading(study).read()
        translation = self._translation(study, records)
        best = self._fit(study, len(records))(records, translation, self._settings, ()).best()
        return replace(best, params=translation.outward(best.params))

    def next_offer(self, study: optuna.Study) -> Offer:
        """Return what the next trial of a study is offered, as `study.ask` would; nothing is written."""
        self._refuse_many_objectives(study)
        trials = all_trials(study)
        waiting = next(iter(queue(trials)), None)
        number = len(trials) if waiting is None else waiting.number
        with self._lock:
            records, known = self._reading(study, number).read(), self._declared(study)
            space = {} if known else self._inferred(records)
            translation = known or (translate(space) if space else None)
            given = {} if waiting is None else given_for(waiting)
            turn = Turn(number, given, records, translation, known is not None, self._settings)
            offer = next_offer(turn, self._fit(study, number))
            return offer if waiting is None else replace(offer, waiting=waiting.number)

    def _translation(self, study: optuna.Study, records: Sequence[Record]) -> Translation:
        known = self._declared(study)
        if known is not None:
            return known
        space = infer(records) or infer_largest(records)
        if not space:
            raise InputError("`study` must have a trial with parameters first; got none. Run one.")
        return translate(space)

    def _declared(self, study: optuna.Study) -> Translation | None:
        return self._given or declared(study_attributes(study))

    def _reading(self, study: optuna.Study, without: int | None = None) -> Reading:
        return Reading(study, self._learn_from, self._prune_as, without)

    def _fit(self, study: optuna.Study, number: int) -> Fit:
        """What makes the optimizer for a trial."""
        maximize = study.direction == StudyDirection.MAXIMIZE

        def fit(
            records: Sequence[Record],
            translation: Translation,
            settings: Problem,
            apart: Sequence[Mapping[str, Any]] = (),
        ) -> Optimizer:
            optimizer = make_optimizer(records, translation, settings, maximize=maximize, number=number, apart=apart)
            if self._last is not None:
                optimizer.adopt(self._last)
            self._last = optimizer  # its models are those of most trials that the next one will know
            return optimizer

        return fit

    # --- Optuna's interface ----------------------------------------------------------------------

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> Distributions:
        """Return the parameters of the trials so far, including crashed ones, or those declared for the study.

        With an `independent_sampler`, only those that all trials share.
        """
        self._refuse_many_objectives(study)
        known = self._declared(study)
        return self._inferred(self._reading(study, trial.number).read()) if known is None else dict(known.distributions)

    def _inferred(self, records: Sequence[Record]) -> Distributions:
        return (relative_space if self._independent_sampler is None else infer)(records)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest all parameters together that the trial is expected to have."""
        self._refuse_many_objectives(study)
        known = self._declared(study)
        asked = dict(search_space)
        translation = known if known and known.distributions == asked else translate(asked) if asked else None
        with self._lock:
            reading, fit = self._reading(study, trial.number), self._fit(study, trial.number)
            turn = Turn(trial.number, given_for(trial), reading.read(), translation, known is not None, self._settings)
            claimed = False
            for _ in range(_ROUNDS):
                offer = next_offer(turn, fit)
                if offer.problem:
                    _logger.warning(f"The model failed ({offer.problem}); this trial is quasi-random.")
                self._publish(study, trial, offer, translation, claimed)
                claimed = offer.retry_of is not None
                before, now = turn.records, reading.read()
                same = rivals(offer, before, now)
                if not same:
                    break
                skip = sum(rival.number < trial.number for rival in same)
                turn = replace(turn, records=now, skip=skip)
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
            past = {record.number: record.params for record in self._reading(study).read()}.get(again, {})
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
            others = self._reading(study, trial.number).read()
            found = find_branch(others, name, distribution, trial.params, suggestion)
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

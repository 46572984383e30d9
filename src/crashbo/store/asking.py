"""Ask for the next trial, alone or among many workers.

Trials are numbered by the storage. Whoever gets a number waits until all lower ones know what they try, and only
then makes its own suggestion: so each one takes all others into account, on any storage and any number of machines.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.internals import live_trial, study_id, trial_id
from crashbo.adapters.optuna.offers import queue
from crashbo.adapters.optuna.transactions import Beginning, new_key, writer
from crashbo.errors import CrashBOError
from crashbo.problem.options import Options
from crashbo.store import recording
from crashbo.store.patience import patience_of
from crashbo.store.storage import StudyError
from crashbo.store.study import Study
from crashbo.store.workers import WORKER, Watch, has_suggestion, is_gone, mark_of, under_way, worker_mark

if TYPE_CHECKING:
    from crashbo.adapters.optuna import CrashBOSampler

_SHORTEST, _LONGEST = 0.02, 1.0  # seconds between two looks
_PATIENCE = 60.0  # seconds without a sign of life before a trial that got no suggestion is given up
_PATIENCE_HERE = 900.0  # the same if its process is there to see: its model may take long, or the machine is busy
_TRIES = 5  # if others give our trial up while its suggestion is computed


class _GivenUpError(CrashBOError, RuntimeError):
    """Another worker ended our trial while its suggestion was computed."""


@dataclass(frozen=True)
class Asked:
    """A suggested trial.

    Attributes:
        number: to tell its outcome with.
        params: to try.
        why: it was suggested, in words.
        success_probability: as believed; None for initial points.
        thresholds: the most probable limits then.
        deviations: their standard deviations.
        relation: what crashes had to do with the objective then, as probabilities.
        worker: the mark on the trial.
    """

    number: int
    params: dict[str, Any]
    why: str = ""
    success_probability: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    deviations: Mapping[str, float] = field(default_factory=dict)
    relation: Mapping[str, float] = field(default_factory=dict)
    worker: Mapping[str, Any] = field(default_factory=dict)


def ask(
    study: Study,
    *,
    kind: str = "ask",
    needed: Callable[[Study, int], bool] | None = None,
    begun: Callable[[int, Mapping[str, Any]], None] | None = None,
    watch: Watch | None = None,
) -> Asked | None:
    """Suggest the next trial and store it as running.

    Args:
        study: to ask.
        kind: "ask", or "run" if this process stays with the trial until it is told.
        needed: of study and trial number, called when it is this trial's turn; if false the trial is withdrawn.
        begun: of number and worker's mark, called before a suggestion is computed.
        watch: for lost workers, if there is one already.

    Returns:
        The suggestion; None if it was not needed.

    Raises:
        StudyError: if other workers gave it up again and again before it was computed.
    """
    study.check_askable()
    watch = watch or Watch()
    watch.release(study)
    use_sampler(study)
    for _ in range(_TRIES):
        worker = worker_mark(kind)
        trial = _new_trial(study, worker)
        if begun is not None:
            begun(trial.number, worker)
        try:
            return _ask_for(study, trial, needed, watch)
        except _GivenUpError:
            continue  # another worker took us for lost
    raise StudyError(
        f"Other workers gave up waiting for a suggestion, {_TRIES} times in a row. The machine may be too busy: use "
        "fewer workers."
    )


def _ask_for(
    study: Study, trial: optuna.Trial, needed: Callable[[Study, int], bool] | None, watch: Watch
) -> Asked | None:
    """Make the suggestion of a new trial when it is its turn."""
    try:
        _wait_for_turn(study, trial.number, watch)
        if needed is not None and not needed(study, trial.number):
            recording.transient(study, trial.number, "not needed any more")
            return None
        params = _suggest_all(study, trial)
    except BaseException:
        _withdraw(study, trial.number)
        raise
    return _asked(study, trial.number, params)


def use_sampler(study: Study, n_trials: int | None = None) -> "CrashBOSampler":
    """Give the study CrashBO's sampler, once.

    Args:
        study: to give it to.
        n_trials: how many trials the study will have, where that is known and its options do not say.
    """
    from crashbo.adapters.optuna import CrashBOSampler

    sampler = study.inner.sampler
    if not isinstance(sampler, CrashBOSampler) and study.own is not None:
        options = Options(n_trials=n_trials)
        study.inner.sampler = sampler = CrashBOSampler(seed=0, options=options, space=study.own)
    elif not isinstance(sampler, CrashBOSampler):
        space = study.definition.space
        study.inner.sampler = sampler = CrashBOSampler.from_study(study.inner, n_trials=n_trials, space=space)
    return sampler


def _new_trial(study: Study, worker: Mapping[str, Any]) -> optuna.Trial:
    """A running trial without params: one that was put in the queue, or a new one, marked in the same step."""
    with study.guarded():
        for waiting in queue(study.inner.get_trials(deepcopy=False)):
            if writer(study.inner).begin(trial_id(waiting), Beginning({WORKER: dict(worker)})):
                return live_trial(study.inner, trial_id(waiting))
        marked = optuna.trial.create_trial(state=TrialState.RUNNING, user_attrs={WORKER: dict(worker)})
        return live_trial(study.inner, writer(study.inner).create(study_id(study.inner), marked, new_key()))


def _wait_for_turn(study: Study, number: int, watch: Watch) -> None:
    """Return when every lower trial that is running knows what it tries.

    This reads all trials at least once: Optuna's cache must know a trial before its params are written.
    """
    before: set[tuple[int, int]] = set()
    since, pause = time.monotonic(), _SHORTEST
    while True:
        trials = under_way(study)
        ahead = [one for one in trials if one.number < number and not has_suggestion(study, one)]
        if study.own is not None:  # trials of another program are its own business
            ahead = [one for one in ahead if mark_of(one) is not None]
        if not ahead:
            return
        away = patience_of(study.inner).outages  # nobody could show a sign of life meanwhile
        life = {(one.number, (mark_of(one) or {}).get("beat", 0)) for one in ahead} | {(-1, away)}
        first = min(ahead, key=lambda one: one.number)
        if life != before:
            before, since, pause = life, time.monotonic(), _SHORTEST
        elif time.monotonic() - since > _patience(first):
            _withdraw(study, first.number)
        watch.release(study, trials)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)


def _patience(trial: FrozenTrial) -> float:
    """How long to wait for a trial's suggestion without a sign of life."""
    worker = mark_of(trial)
    return _PATIENCE_HERE if worker is not None and is_gone(worker) is False else _PATIENCE


def _withdraw(study: Study, number: int) -> None:
    """Give up a trial that got no suggestion, whatever else is wrong."""
    try:
        recording.transient(study, number, "withdrawn before it was suggested")
    except CrashBOError:
        return


def _suggest_all(study: Study, trial: optuna.Trial) -> dict[str, Any]:
    """What to try; this computes the suggestion and stores it."""
    with study.guarded(reading=False):
        try:
            distributions = study.translation.distributions
            return {name: _suggest(trial, name, distributions[name]) for name in study.definition.space}
        except optuna.exceptions.UpdateFinishedTrialError as error:
            raise _GivenUpError("Another worker gave this trial up.") from error


def _suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    return trial.suggest_categorical(name, distribution.choices)  # type: ignore[attr-defined]


def _asked(study: Study, number: int, params: Mapping[str, Any]) -> Asked:
    trial = study.trial(number)
    marks, given = trial.user_attrs, "a point you gave" if "fixed_params" in trial.system_attrs else ""
    return Asked(
        number=number,
        params={name: study.translation.shown(name, value) for name, value in params.items()},
        why=marks.get("crashbo:why", given),
        success_probability=marks.get("crashbo:success_probability"),
        thresholds=marks.get("crashbo:thresholds") or {},
        deviations=marks.get("crashbo:deviations") or {},
        relation=marks.get("crashbo:relation") or {},
        worker=marks.get(WORKER, {}),
    )

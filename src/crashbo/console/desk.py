"""Everything the page can write. Each one only writes: none waits for the model."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.codec import RETRY_OF, SKIPPED
from crashbo.adapters.optuna.correcting import Correction, amend
from crashbo.adapters.optuna.internals import set_system_attribute, trial_id
from crashbo.adapters.optuna.transactions import CREATED, Beginning, Ending, new_key, writer
from crashbo.console.forms import NAME_LIMIT, REASON_LIMIT, Form
from crashbo.console.snapshot import BY, EXPECTED, Reader, find_row
from crashbo.errors import CrashBOError, InputError
from crashbo.problem.outcome import CRASHED, Outcome, check_outcome, labelled
from crashbo.problem.space import Space
from crashbo.store import recording
from crashbo.store.storage import StudyError
from crashbo.store.study import Study
from crashbo.store.workers import is_gone, mark_of

_NEAR = 0.01  # of the unit cube, in every coordinate: the same experiment
_ASKING = 60.0  # seconds after which a trial without params is not waited for
_OPEN = ("pending", "finished", "crashed", "starting")
CORRECTIONS = ("finished", "crashed", "transient", "deleted", "restored")


class TakenError(CrashBOError, RuntimeError):
    """The suggestion is not there any more: someone was faster, or there are newer results."""


@dataclass(frozen=True)
class Offer:
    """A suggestion that anyone may take.

    Attributes:
        key: by which the page names it.
        basis: the fingerprint of the study it was computed for.
        count: how many trials the study had then.
        params: to try.
        beliefs: why, mode, success_probability, thresholds and so on: as kept with a trial.
        expected: mean and standard deviation of the cost, and of each constraint.
        retry_of: the transient trial that this one tries again.
        waiting: the number of the queued trial that this one is.
    """

    key: str
    basis: str
    count: int
    params: Mapping[str, Any]
    beliefs: Mapping[str, Any] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)
    retry_of: int | None = None
    waiting: int | None = None


class Desk:
    """Writes on a study, one thing at a time."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._reader = Reader(study)
        self._lock = threading.Lock()

    # --- begin -----------------------------------------------------------------------------------

    def find(self, key: str | None) -> int | None:
        """The number of the trial that a request of this key has begun; None if there is none."""
        with self.study.guarded():
            trials = self.study.inner.get_trials(deepcopy=False) if key else []
        return next((one.number for one in trials if one.user_attrs.get(CREATED) == key), None)

    def take(self, offer: Offer, by: str = "", key: str | None = None) -> int:
        """Start the trial of an offer, unless someone else did, here or in any other process.

        Trials are numbered by the storage, so of two that begin the same experiment at once the lower one has it.

        Returns:
            Its number.

        Raises:
            TakenError: if someone was faster.
        """
        with self._lock:
            self._refuse_taken(offer, upto=None)
            if offer.waiting is not None:
                return self._take_waiting(offer, offer.waiting, by, key)
            number = recording.store(self.study, self._trial(offer, TrialState.RUNNING, by), key)
            try:
                self._refuse_taken(offer, upto=number)
            except TakenError:
                self._withdraw(number)
                raise
            return number

    def skip(self, offer: Offer, by: str = "", key: str | None = None) -> int:
        """Record that nobody wants an offer; it is kept as a pruned trial, and not suggested again."""
        with self._lock:
            self._refuse_taken(offer, upto=None)
            if offer.waiting is not None:
                self._skip_waiting(offer.waiting, by)
                return offer.waiting
            return recording.store(self.study, self._trial(offer, TrialState.PRUNED, by), key)

    def start(self, params: Mapping[str, Any], by: str = "", key: str | None = None) -> int:
        """Start a trial with one's own values; with the same key it is started once."""
        beliefs = {"mode": "given", "why": "values that a person chose"}
        offer = Offer("", "", 0, self.study.definition.space.validate(params), beliefs)
        with self._lock:
            return recording.store(self.study, self._trial(offer, TrialState.RUNNING, by), key)

    def _trial(self, offer: Offer, state: TrialState, by: str) -> FrozenTrial:
        self.study.check_askable()
        marks = _marks(offer, by) | ({SKIPPED: "skipped"} if state == TrialState.PRUNED else {})
        return optuna.trial.create_trial(
            state=state,
            params=self.study.translation.outward(offer.params),
            distributions=dict(self.study.translation.distributions),
            user_attrs=marks,
            system_attrs={} if offer.retry_of is None else {RETRY_OF: offer.retry_of},
        )

    def _refuse_taken(self, offer: Offer, upto: int | None) -> None:
        """Refuse an offer if a trial before `upto` is the same experiment and came after it, or is under way.

        A trial that waits for its suggestion will get what the models suggest now, which may be this offer.
        """
        for row in self._rows():
            number, status = row["number"], row["status"]
            if status not in _OPEN or (upto is not None and number >= upto):
                continue
            asked = number >= offer.count or status == "pending"  # it may have got its params since
            if asked and same(self.study.definition.space, row["params"], offer.params):
                raise TakenError(f"Someone else has just taken this one: it is trial {number}.")
            if status == "starting" and not self._abandoned(number):
                words = f"Trial {number} is just being given a suggestion, perhaps this one."
                raise TakenError(f"{words} Look again in a moment.")

    def _abandoned(self, number: int) -> bool:
        """Whether a trial without params will get none any more: its process has ended, or it began long ago."""
        trial = self.study.trial(number)
        worker, began = mark_of(trial), trial.datetime_start
        if worker is None or is_gone(worker):
            return True
        return began is None or (datetime.now() - began).total_seconds() > _ASKING

    def _rows(self) -> tuple[Mapping[str, Any], ...]:
        return self._reader.read().rows

    def _take_waiting(self, offer: Offer, number: int, by: str, key: str | None) -> int:
        """Start a trial of the queue; the storage lets one process do so."""
        self.study.check_askable()
        translation = self.study.translation
        chosen = translation.outward(offer.params)
        params = {name: (chosen[name], one) for name, one in translation.distributions.items()}
        marks = _marks(offer, by)
        trial = self.study.trial(number)
        with self.study.guarded():
            if not writer(self.study.inner).begin(trial_id(trial), Beginning(marks, params, key or new_key())):
                raise TakenError(f"Someone else has just taken this one: it is trial {number}.")
            if offer.retry_of is not None:
                set_system_attribute(self.study.inner, trial, RETRY_OF, offer.retry_of)
        return number

    def _skip_waiting(self, number: int, by: str) -> None:
        marks = {SKIPPED: "skipped"} | ({BY: by} if by else {})
        trial = self.study.trial(number)
        ending = Ending(TrialState.PRUNED, None, marks, source=TrialState.WAITING)
        with self.study.guarded():
            if not writer(self.study.inner).finish(trial_id(trial), ending):
                raise TakenError(f"Someone else has just taken this one: it is trial {number}.")

    def _withdraw(self, number: int) -> None:
        """End a trial that lost the race; it is none."""
        trial = self.study.trial(number)
        with self.study.guarded():
            marks = {SKIPPED: "taken by someone else"}
            writer(self.study.inner).finish(trial_id(trial), Ending(TrialState.PRUNED, None, marks))

    # --- end -------------------------------------------------------------------------------------

    def tell(self, form: Form, key: str | None = None) -> int:
        """Record a cost."""
        number, cost, by = form.number(), form.objective(), form.text("by", NAME_LIMIT)
        seen = form.constraints(self.study.definition, all_needed=True)
        form.finish()
        said = check_outcome(cost, seen, self.study.definition.constraints)
        wanted = ("finished" if said.objective is not None else "crashed", said.objective, _stored(said), said.reason)
        with self._lock:
            self._once(number, wanted, lambda: recording.tell(self.study, number, cost, seen, key=key, by=by))
        return number

    def crash(self, form: Form, key: str | None = None) -> int:
        """Record a crash with its reason and what was seen before; all of it may be empty."""
        number, reason, by = form.number(), form.text("reason", REASON_LIMIT), form.text("by", NAME_LIMIT)
        seen = form.constraints(self.study.definition, all_needed=False)
        form.finish()
        wanted = ("crashed", None, _stored(check_outcome(CRASHED, seen, self.study.definition.constraints)), reason)
        with self._lock:
            self._once(number, wanted, lambda: recording.crash(self.study, number, reason, seen, key=key, by=by))
        return number

    def transient(self, form: Form, key: str | None = None) -> int:
        """Record a failure that does not count; its params are offered again."""
        number, reason, by = form.number(), form.text("reason", REASON_LIMIT), form.text("by", NAME_LIMIT)
        form.finish()
        wanted: tuple[Any, ...] = ("transient", None, {}, reason)
        with self._lock:
            self._once(number, wanted, lambda: recording.transient(self.study, number, reason, key=key, by=by))
        return number

    def _once(self, number: int, wanted: tuple[Any, ...], write: Callable[[], object]) -> None:
        """Write; if the very same is stored already, a lost answer made someone press twice."""
        try:
            write()
        except (InputError, StudyError) as error:
            row = find_row(self._rows(), number)
            if row is None or row["status"] == "pending":
                raise
            if wanted != (row["status"], row["objective"], row["constraints"], row["reason"]):
                words = f"Trial {number} has a result already. Open it in the table of trials to correct it."
                raise TakenError(words) from error

    def correct(self, form: Form, key: str | None = None) -> int:
        """Correct, delete or restore a finished trial; what was recorded before is kept.

        A correction to a value is exactly what was said: a constraint left out counts as not seen.
        """
        number, status = form.number(), form.word("status", CORRECTIONS)
        reason, by, version = form.text("reason", REASON_LIMIT), form.text("by", NAME_LIMIT), form.version()
        valued = status in ("finished", "crashed")
        cost = form.objective() if status == "finished" else None
        seen = form.constraints(self.study.definition, all_needed=status == "finished") if valued else {}
        form.finish()
        exact = Correction(status, cost, dict(seen), reason, by)
        with self._lock, self.study.guarded():
            if valued:
                amend(self.study.inner, number, lambda before: exact, key=key, version=version)
            else:
                recording.correct(self.study, number, status=status, reason=reason, key=key, version=version, by=by)
        return number


def _marks(offer: Offer, by: str) -> dict[str, Any]:
    """What is kept with a trial about its offer."""
    marks: dict[str, Any] = {f"crashbo:{key}": value for key, value in offer.beliefs.items()}
    marks |= {BY: by} if by else {}
    return marks | ({EXPECTED: dict(offer.expected)} if offer.expected else {})


def same(space: Space, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two params are the same experiment."""
    if not space.dimension or any(name not in one or name not in other for name in space):
        return False
    try:
        return bool(np.abs(space.encode(one) - space.encode(other)).max() < _NEAR)
    except InputError:  # a value from the queue, outside its range
        return dict(one) == dict(other)


def _stored(outcome: Outcome) -> dict[str, Any]:
    """Constraints as a row shows them."""
    return dict(sorted(labelled(outcome.constraints).items()))

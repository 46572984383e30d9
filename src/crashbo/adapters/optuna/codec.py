"""How outcomes are written on Optuna trials and read back.

On a trial, as user attributes: "crash" (reason), "transient" (reason), "constraint:<name>" (a number or
"violated"), "crashbo:told_by" (who said so), "crashbo:skipped" (on a pruned trial: nobody ran it). They are written by
`reporting` and `crashbo.store.recording`; what `correcting` adds to the study counts instead. What the words mean is
in docs/glossary.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.pruning import Curve, curve_of
from crashbo.adapters.optuna.transactions import CONSTRAINT, CRASH, TRANSIENT
from crashbo.problem.outcome import (
    LARGEST,
    VIOLATED,
    Constraint,
    Outcome,
    Trial,
    check_outcome,
    is_number,
    labelled,
    why_no_cost,
)

Status: TypeAlias = Literal["finished", "crashed", "pending", "pruned", "ignored"]
Learn: TypeAlias = bool | Callable[[FrozenTrial], bool]

CORRECTION = "crashbo:correction:"
TOLD_BY = "crashbo:told_by"
SKIPPED = "crashbo:skipped"
DEFAULTS = "crashbo:defaults"  # of a study: values of parameters in trials that were begun before there were those
SUGGESTION, RETRY_OF = "crashbo:suggestion", "crashbo:retry_of"  # system attributes, written by the sampler
VIOLATED_MARK = "violated"
_LAST = 2**63 - 1  # the step of a value that came without one
PRUNED_CHOICES = ("estimate", "value", "crash", "ignore")


@dataclass(frozen=True)
class Record:
    """One trial of a study as CrashBO sees it.

    Attributes:
        number: number of the trial.
        params: what is or was tried; for a running trial, what has been suggested so far.
        distributions: distributions of the params.
        status: "finished" (with a cost), "crashed", "pending" (running), "pruned" (stopped early) or "ignored".
        objective: the cost, in the study's own direction; None unless finished.
        estimate: for a pruned trial, the estimate of its final cost; None if unknown.
        constraints: reported values by name; None means violated.
        reason: reason of a crash or a transient failure, in words.
        limits: Optuna's own constraints by name, which hold up to 0.
        transient: whether it failed for a reason unrelated to its params, which are then tried again.
        deleted: whether it was deleted by a correction.
        skipped: whether it was suggested but never run.
        retry_of: the transient trial that this one repeats.
        suggestion: all params that the sampler suggested, whether used yet or not, in Optuna's internal representation.
    """

    number: int
    params: Mapping[str, Any]
    distributions: Mapping[str, BaseDistribution]
    status: Status
    objective: float | None = None
    estimate: float | None = None
    constraints: Mapping[str, float | None] = field(default_factory=dict)
    reason: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    transient: bool = False
    deleted: bool = False
    skipped: bool = False
    retry_of: int | None = None
    suggestion: Mapping[str, float] = field(default_factory=dict)

    def failed_under(self, constraints: Sequence[Constraint]) -> bool:
        """Whether it crashed or violated a limit, including known limits and Optuna's own constraints."""
        broken = any(value > 0 for value in self.limits.values())
        told = Trial(self.number, self.params, self.objective, self.constraints)
        return self.status == "crashed" or (self.status == "finished" and (broken or told.failed_under(constraints)))

    @property
    def teaches(self) -> bool:
        """Whether the model learns from it: it has a cost, an estimate of one, or a crash."""
        return self.status in ("finished", "crashed") or (self.status == "pruned" and self.estimate is not None)

    @property
    def word(self) -> str:
        """The status; for an ignored trial the reason: "deleted", "skipped" or "transient"."""
        reasons = {"deleted": self.deleted, "skipped": self.skipped, "transient": self.transient}
        return next((name for name, holds in reasons.items() if holds), self.status)


def read_one(
    trial: FrozenTrial, history: Sequence[Mapping[str, Any]], learn_from: Learn = True, pruned: str = "ignore"
) -> Record:
    """Return one trial with its corrections; what a pruned one says takes the others, see `read`."""
    record = _uncorrected(trial, learn_from, pruned)
    deleted = False
    for entry in history if trial.state.is_finished() else ():
        deleted = entry["status"] == "deleted"
        if entry["status"] in ("finished", "crashed", "transient"):
            record = _corrected(record, entry)
    return replace(record, status="ignored", transient=False, deleted=True) if deleted else record


def _corrected(record: Record, entry: Mapping[str, Any]) -> Record:
    transient = entry["status"] == "transient"
    return replace(
        record,
        status="ignored" if transient else entry["status"],
        objective=entry["objective"],
        estimate=None,
        constraints=_seen(entry["constraints"]),
        reason=entry["reason"],
        transient=transient,
        skipped=False,
    )


def _uncorrected(trial: FrozenTrial, learn_from: Learn, pruned: str) -> Record:
    """What the trial itself says."""
    marks, inner = trial.user_attrs, trial.system_attrs
    status, objective, reason = _outcome(trial, learn_from, pruned)
    prefix = len(CONSTRAINT)
    constraints = {key[prefix:]: value for key, value in marks.items() if key.startswith(CONSTRAINT)}
    return Record(
        number=trial.number,
        params=trial.params,
        distributions=trial.distributions,
        status=status,
        objective=objective,
        constraints=_seen(constraints),
        reason=reason,
        limits=_limits(trial),
        transient=_transient(trial),
        skipped=_skipped(trial),
        retry_of=inner.get(RETRY_OF),
        suggestion=inner.get(SUGGESTION, {}),
    )


def _outcome(trial: FrozenTrial, learn_from: Learn, pruned: str) -> tuple[Status, float | None, str]:
    """Status, objective and reason."""
    marks = trial.user_attrs
    if _skipped(trial):
        return "ignored", None, "" if marks[SKIPPED] == "skipped" else str(marks[SKIPPED])
    if trial.state == TrialState.RUNNING:
        return ("pending" if trial.params or SUGGESTION in trial.system_attrs else "ignored"), None, ""
    if trial.state == TrialState.COMPLETE:
        why = why_no_cost(trial.value)
        return ("finished", trial.value, "") if why is None else ("crashed", None, why)
    if trial.state == TrialState.PRUNED:
        return _pruned(trial, pruned)
    if trial.state == TrialState.FAIL and not _transient(trial):
        counts = learn_from(trial) if callable(learn_from) else learn_from
        return ("crashed" if counts and trial.params else "ignored"), None, str(marks.get(CRASH) or "")
    return "ignored", None, str(marks.get(TRANSIENT) or "")


def _pruned(trial: FrozenTrial, pruned: str) -> tuple[Status, float | None, str]:
    """The same of a trial that was stopped early: by what it reported last, if it did."""
    reported, said = _reported(trial), trial.user_attrs.get(CRASH)
    if not reported:
        return ("crashed" if pruned == "crash" else "pruned"), None, str(said or "pruned without a value")
    step = max(reported)
    where = "" if step == _LAST else f" at step {step}"
    reason = str(said or f"pruned{where}, value {reported[step]:.6g}")
    diverged = not _usable(reported[step]) and pruned != "ignore"
    return ("crashed" if diverged or pruned == "crash" else "pruned"), None, reason


def _reported(trial: FrozenTrial) -> Mapping[int, float]:
    """Values by step; a pruned trial may have a value without a step."""
    if trial.intermediate_values or trial.state != TrialState.PRUNED or trial.value is None:
        return trial.intermediate_values
    return {_LAST: trial.value}


def _transient(trial: FrozenTrial) -> bool:
    """Whether a failure says nothing. With both marks someone confirmed a crash: it must not be offered again."""
    marks = trial.user_attrs
    return trial.state == TrialState.FAIL and marks.get(TRANSIENT) is not None and marks.get(CRASH) is None


def _skipped(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.PRUNED and SKIPPED in trial.user_attrs


def _limits(trial: FrozenTrial) -> dict[str, float]:
    """Optuna's own constraints, cut to what a model can take."""
    found: Mapping[str, float] = trial.constraints
    return {name: min(max(value, -LARGEST), LARGEST) for name, value in found.items() if not math.isnan(value)}


def _seen(values: Mapping[str, Any]) -> dict[str, float | None]:
    """Constraint values as stored; anything that is not one counts as not seen."""
    usable = {name: value for name, value in values.items() if value == VIOLATED_MARK or is_number(value)}
    return {name: float(value) if _usable(value) else None for name, value in usable.items()}


def _usable(value: object) -> bool:
    return is_number(value) and abs(value) <= LARGEST  # type: ignore[arg-type]


def is_violated(value: object) -> bool:
    """Whether a constraint value says that its limit was broken: None, "violated" or `crashbo.VIOLATED`."""
    return value is None or value is VIOLATED or (isinstance(value, str) and value == VIOLATED_MARK)


def marks_of(outcome: Outcome) -> dict[str, Any]:
    """What stands on a trial beside its state and its cost: constraint values, and the reason of a crash."""
    marks = {CONSTRAINT + name: value for name, value in labelled(outcome.constraints).items()}
    return marks if outcome.objective is not None else marks | {CRASH: outcome.reason}


def checked(objective: Any, values: Mapping[str, Any]) -> Outcome:
    """Validate an outcome as `Optimizer.tell` would, None and "violated" standing for `VIOLATED` too."""
    return check_outcome(objective, labelled(values), [Constraint(name) for name in values])


def curve_in(trial: FrozenTrial) -> Curve:
    """The values it reported that a model can take; of a pruned trial at least the one it ended with."""
    reported = _reported(trial)
    return curve_of(reported, (step for step, value in reported.items() if _usable(value)))

"""What everyone sees: the study, the suggestion, the best guess; kept up to date, told to all who listen."""

import hashlib
import json
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crashbo.console.desk import Desk, Offer, TakenError
from crashbo.console.model import Model
from crashbo.console.snapshot import Reader, Snapshot, best_trial, describe
from crashbo.console.words import why
from crashbo.errors import CrashBOError
from crashbo.store.study import Study

BUSY_SECONDS, IDLE_SECONDS = 0.4, 2.0  # between looks at the storage: while someone watches, and while nobody does
_AGAIN_SECONDS = 20.0  # before a model that gave up is asked again
_REMEMBERED = 500  # snapshots whose fingerprints are known


@dataclass
class Beliefs:
    """What the model said last.

    Attributes:
        offer: the suggestion, until it is taken.
        best: as JSON.
        limits: value, standard deviation and range of 95 % probability, by output; one with nothing to say is absent.
        relation: what crashes have to do with the cost and how sure that is, in words; empty while unknown.
        basis: of the models that are fitted now.
        ready: whether there is a model to ask.
        problem: why there is none, for people.
        failed: whether it gave up, so that nothing more is to be expected.
    """

    offer: Offer | None = None
    best: dict[str, Any] | None = None
    limits: dict[str, list[float]] = field(default_factory=dict)
    relation: str = ""
    basis: str = ""
    ready: bool = False
    problem: str = ""
    failed: bool = False


class Hub:
    """Keeps the page's state: reads the storage, hears the model, numbers every change."""

    def __init__(self, study: Study, model: Model) -> None:
        self.study, self.model, self.desk = study, model, Desk(study)
        self.boot = secrets.token_hex(4)
        self._reader = Reader(study)
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._listeners: set[Callable[[int], object]] = set()
        self._revision = 0
        self._rows: dict[int, tuple[int, str]] = {}  # by trial: revision of its last change, and its JSON
        self._known: OrderedDict[str, int] = OrderedDict()  # revision by fingerprint
        self._writes = self._settled = 0  # results from this page: stored, and read back
        self._wrote = 0  # the revision that first had all of those read back
        self._look_again = 0.0
        self._over: deque[str] = deque(maxlen=_REMEMBERED)  # keys of offers that were taken or skipped
        self._snapshot: Snapshot | None = None
        self._beliefs = Beliefs()
        self._trouble = ""  # with the storage
        self._info = describe(study)
        self._thread: threading.Thread | None = None

    # --- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read the study once, then watch it in a thread."""
        self.refresh()
        self.model.start(self.hear)
        self._thread = threading.Thread(target=self._watch, name="crashbo-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and the model."""
        self._stopped.set()
        self._wake.set()
        self.model.stop()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait(BUSY_SECONDS if self._listeners else IDLE_SECONDS)
            self._wake.clear()
            if not self._stopped.is_set():
                self.refresh()
                self._encourage()

    def _encourage(self) -> None:
        """Let a model that gave up try again after a while: the storage may have been busy."""
        with self._lock:
            due = self._beliefs.failed and time.monotonic() > self._look_again
            self._look_again = time.monotonic() + _AGAIN_SECONDS if due else self._look_again
        if due:
            self.model.look()

    def listen(self, listener: Callable[[int], object]) -> Callable[[], None]:
        """Call a function with the revision at every change; returns how to end that."""
        with self._lock:
            self._listeners.add(listener)
        self._wake.set()
        return lambda: self._unsubscribe(listener)

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def _unsubscribe(self, listener: Callable[[int], object]) -> None:
        with self._lock:
            self._listeners.discard(listener)

    # --- changes ---------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read the storage now; tell everyone if anything has changed. Nobody who writes waits for this."""
        with self._reading:
            writes = self._writes
            try:
                found, trouble = self._reader.read(), ""
            except CrashBOError as error:
                found, trouble = None, str(error)
            with self._lock:
                before = self._snapshot
                changed = found is not None and self._take_in(found, writes)
                if changed or trouble != self._trouble:
                    self._trouble = trouble
                    self._announce()
        if found is not None and (before is None or found.basis != before.basis):
            self.model.look()

    def _take_in(self, found: Snapshot, writes: int) -> bool:
        """Make what was read the state; whether that is anything new."""
        before, settles = self._snapshot, writes > self._settled
        if found is not before:
            self._snapshot = found
            self._note(found, before is None or found.basis != before.basis)
            self._follow(self._reader.study, found)
        if settles:
            self._settled, self._wrote = writes, self._known[found.basis]
        return settles or found is not before

    def _follow(self, study: Study, found: Snapshot) -> None:
        """Use the study as it is defined now; suggestions made for an earlier definition are not to be taken."""
        if study is not self.study:
            self.study = self.desk.study = study
            self._info = describe(study)
            self._wrote = self._known[found.basis]

    def _note(self, snapshot: Snapshot, new: bool) -> None:
        """Number the rows that have changed."""
        revision = self._revision + 1
        for row in snapshot.rows:
            text = json.dumps(row)
            if self._rows.get(row["number"], (0, ""))[1] != text:
                self._rows[row["number"]] = (revision, text)
        if new:
            self._known[snapshot.basis] = revision
            self._known.move_to_end(snapshot.basis)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _announce(self) -> None:
        self._revision += 1
        for listener in list(self._listeners):
            listener(self._revision)

    def hear(self, said: Mapping[str, Any]) -> None:
        """Take in what the model found."""
        with self._lock:
            beliefs, kind = self._beliefs, said["kind"]
            if kind == "model":
                beliefs.ready, beliefs.basis, beliefs.failed = said["ready"], said["basis"], False
            elif kind == "offer":
                made = _offer(said)
                beliefs.offer = None if made.key in self._over else made
            elif kind == "best":
                beliefs.best, beliefs.limits, beliefs.relation = said["best"], said["limits"], said["relation"]
            elif kind == "failed":
                beliefs.failed, beliefs.offer = True, None
                self._look_again = time.monotonic() + _AGAIN_SECONDS
            beliefs.problem = said.get("problem", beliefs.problem)
            self._announce()

    def wrote(self) -> None:
        """Note that a result was stored from this page: older suggestions are not to be taken any more."""
        with self._lock:
            self._writes += 1
        self._wake.set()

    # --- the suggestion --------------------------------------------------------------------------

    def claim(self, key: str) -> Offer:
        """The suggestion of that key, if it may still be taken.

        Raises:
            TakenError: if it may not.
        """
        with self._lock:
            offer = self._beliefs.offer
            if offer is None or offer.key != key:
                raise TakenError("This suggestion has been taken or replaced. Look at the new one.")
            if not self._current(offer):
                raise TakenError("A newer suggestion is being computed from the latest result. Wait for it.")
            return offer

    def _current(self, offer: Offer) -> bool:
        """Whether an offer knows all results from this page; those of other processes may have come since."""
        return self._settled == self._writes and self._known.get(offer.basis, 0) >= self._wrote

    def gone(self, offer: Offer) -> None:
        """Note that an offer was taken or skipped, by whomever."""
        with self._lock:
            self._over.append(offer.key)
            if self._beliefs.offer is not None and self._beliefs.offer.key == offer.key:
                self._beliefs.offer = None
        self.refresh()

    # --- the state as JSON -----------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """The study as it was read last."""
        with self._lock:
            if self._snapshot is None:
                raise CrashBOError(self._trouble or "The study has not been read yet. Try again in a moment.")
            return self._snapshot

    def state(self, boot: str = "", since: int = 0) -> str:
        """Everything the page shows, as JSON text; of the trials those that changed after a revision.

        Args:
            boot: of the console the page knows; all trials if it is another.
            since: the revision the page knows.
        """
        with self._lock:
            after = since if boot == self.boot else 0
            rows = [text for revision, text in self._rows.values() if revision > after]
            head = json.dumps(self._head())
        return f'{head[:-1]}, "trials": [{", ".join(rows)}]}}'

    def _head(self) -> dict[str, Any]:
        beliefs, seen = self._beliefs, self._snapshot
        return {
            "boot": self.boot,
            "revision": self._revision,
            "info": self._info,
            "counts": {} if seen is None else seen.tally,
            "total": 0 if seen is None else len(seen.rows),
            "best_trial": None if seen is None else best_trial(self.study, seen),
            "offer": self._offer_json(),
            "best": beliefs.best,
            "limits": beliefs.limits,
            "relation": beliefs.relation,
            "model": {
                "ready": beliefs.ready,
                "basis": beliefs.basis,
                "problem": beliefs.problem,
                "busy": not beliefs.failed
                and (beliefs.offer is None or seen is None or beliefs.offer.basis != seen.basis),
            },
            "trouble": self._trouble,
        }

    def _offer_json(self) -> dict[str, Any] | None:
        offer = self._beliefs.offer
        if offer is None:
            return None
        return {
            "key": offer.key,
            "params": dict(offer.params),
            "why": why(offer.beliefs),
            "success_probability": offer.beliefs.get("success_probability"),
            "expected": dict(offer.expected),
            "current": self._current(offer),
        }


def _offer(said: Mapping[str, Any]) -> Offer:
    found = said["offer"]
    text = json.dumps([said["basis"], found["params"]])  # the same suggestion keeps its key
    return Offer(
        key=hashlib.sha256(text.encode()).hexdigest()[:20],
        basis=said["basis"],
        count=said["count"],
        params=found["params"],
        beliefs=found["beliefs"],
        expected=found["expected"],
        retry_of=found.get("retry_of"),
        waiting=found.get("waiting"),
    )

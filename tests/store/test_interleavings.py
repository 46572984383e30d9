"""Random interleavings of everything that writes on a study, with kills and restarts, against what must be true.

Acknowledged once, stored once, whole; refused, stored nowhere; killed, stored whole or not at all; what was recorded
first stays; a point is not offered again after a confirmed crash.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.correcting import first_recorded
from crashbo.adapters.optuna.records import corrections
from crashbo.adapters.optuna.transactions import CREATED, TOLD, new_key
from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.files import make_definition
from crashbo.store.storage import Place
from crashbo.store.study import Study, counts, create_study
from tests.store.actors import Actor
from tests.store.helpers import QUASI_RANDOM
from tests.store.server import Server

DEFINITION = make_definition({"x": [0.0, 1.0]}, constraints=["reach"], options=QUASI_RANDOM)
KINDS = ("ask", "ask", "ask", "tell", "tell", "crash", "crash", "transient", "correct", "delete", "add", "skip", "run")
ENDINGS = ("tell", "crash", "transient")
ANY = st.integers(0, 10**6)
DEATH = st.none() | st.integers(0, 14)
_names, _values = itertools.count(), itertools.count(1)


@dataclass
class Command:
    """Something that an actor was told to do.

    Attributes:
        kind: one of KINDS.
        arguments: of it.
        fate: "done", "refused" or "lost".
        result: of what was done.
    """

    kind: str
    arguments: dict[str, Any]
    fate: str = ""
    result: Any = None

    @property
    def do(self) -> str:
        return "correct" if self.kind == "delete" else self.kind

    @property
    def key(self) -> str:
        return str(self.arguments.get("key", ""))

    @property
    def number(self) -> int:
        return int(self.arguments["number"])


@dataclass
class Tally:
    """What has been tried so far."""

    interleavings: int = 0
    kills: int = 0
    restarts: int = 0


@dataclass
class World:
    """What all examples share.

    Attributes:
        make: a new study.
        server: that can be restarted; None for a file.
        actors: processes that write.
        tally: of all examples.
    """

    make: Callable[[], Study]
    server: Server | None
    actors: tuple[Actor, ...] = field(default_factory=lambda: (Actor(), Actor(), Actor()))
    tally: Tally = field(default_factory=Tally)


class Interleavings(RuleBasedStateMachine):
    """A study, two processes that write on it, and what must be true."""

    world: ClassVar[World]

    def __init__(self) -> None:
        super().__init__()
        self.study = self.world.make()
        self.commands: list[Command] = []
        self.first: dict[int, dict[str, Any]] = {}

    # --- what happens ------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(KINDS), pick=ANY, death=DEATH)
    def one(self, kind: str, pick: int, death: int | None) -> None:
        """One process writes, and may be killed."""
        self._carry_out([(self._command(kind, pick), death)])

    @rule(kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)), pick=ANY, same=st.booleans(), death=DEATH)
    def two(self, kinds: tuple[str, str], pick: int, same: bool, death: int | None) -> None:
        """Two write at the same time, often on the same trial, and one may be killed."""
        first, second = self._command(kinds[0], pick), self._command(kinds[1], pick if same else pick + 1)
        self._carry_out([(first, death), (second, None)])

    @rule(pick=ANY)
    def again(self, pick: int) -> None:
        """What was lost is asked for again, with the same key."""
        lost = [one for one in self.commands if one.fate == "lost" and one.key]
        if lost:
            self._carry_out([(lost[pick % len(lost)], None)])

    @precondition(lambda self: self.world.server is not None)
    @rule(kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)), pick=ANY)
    def restart(self, kinds: tuple[str, str], pick: int) -> None:
        """The server goes away while two write."""
        self._carry_out([(self._command(kind, pick + n), None) for n, kind in enumerate(kinds)], restart=True)

    def _command(self, kind: str, pick: int) -> Command:
        trials = self._trials()
        if not trials and kind in (*ENDINGS, "correct", "delete"):
            kind = "ask"
        value = next(_values) / 1000.0
        if kind in ("ask", "run"):
            done = counts(self.study.definition, self.study.records())
            return Command(kind, {"trials": done["finished"] + done["crashed"] + 1} if kind == "run" else {})
        arguments: dict[str, Any] = {"key": new_key()}
        if kind in ("add", "skip"):
            arguments["params"] = {"x": (pick % 999_983) / 999_983}
            return Command(
                kind, arguments | ({"objective": value, "constraints": {"reach": value}} if kind == "add" else {})
            )
        arguments["number"] = _pick(trials, kind, pick)
        if kind == "tell":
            arguments |= {"objective": value, "constraints": {"reach": value}, "by": str(value)}
        elif kind == "crash":
            arguments |= {"reason": str(value), "constraints": {"reach": value} if pick % 2 else {}, "by": str(value)}
        elif kind == "transient":
            arguments |= {"reason": str(value)}
        elif kind == "delete":
            arguments |= {"status": "deleted" if pick % 3 else "restored", "reason": str(value)}
        else:
            arguments |= {"status": "crashed", "reason": str(value), "clear": ()}
            if pick % 2:
                arguments |= {"status": "finished", "objective": value, "constraints": {"reach": value}}
        return Command(kind, arguments)

    def _carry_out(self, wanted: list[tuple[Command, int | None]], *, restart: bool = False) -> None:
        crashed = {one.number: one.params.get("x") for one in self.study.records() if one.status == "crashed"}
        busy = list(zip(self.world.actors, wanted, strict=False))
        before = [actor.kills for actor, _ in busy]
        for actor, (command, death) in busy:
            actor.send(self.study.place, command.do, command.arguments, death)
        if restart and self.world.server is not None:
            self.world.server.stop()
            self.world.server.start()
            self.world.tally.restarts += 1
        for actor, (command, _) in busy:
            command.fate, command.result = actor.answer()
            if command not in self.commands:
                self.commands.append(command)
        self.world.tally.interleavings += 1
        self.world.tally.kills += sum(actor.kills for actor, _ in busy) - sum(before)
        changed = {one.number for one, _ in wanted if one.kind in ("correct", "delete")}
        for command, _ in wanted:
            if command.kind == "ask" and command.fate == "done":
                again = [n for n, x in crashed.items() if x == command.result[1]["x"] and n not in changed]
                assert not again, f"trial {again[0]} crashed, and its point was offered again"

    # --- what must be true -----------------------------------------------------------------------------

    @invariant()
    def nothing_is_lost_doubled_or_mixed(self) -> None:
        trials, changes = {one.number: one for one in self._trials()}, corrections(self.study.inner)
        told = {number: one.user_attrs.get(TOLD) for number, one in trials.items()}
        created = [one.user_attrs.get(CREATED) for one in trials.values()]
        entries = [(number, entry) for number, all_of_it in changes.items() for entry in all_of_it]
        for command in self.commands:
            if command.kind in ENDINGS:
                stored = [number for number, key in told.items() if key == command.key]
                for number in stored:
                    assert number == command.number
                    _check_whole(trials[number], command)
            elif command.kind in ("correct", "delete"):
                stored = [number for number, entry in entries if entry["key"] == command.key]
                assert set(stored) <= {command.number}
            elif command.key:
                stored = [number for number, key in enumerate(created) if key == command.key]
                assert command.fate != "done" or stored == [command.result]
            else:
                continue
            allowed = {"done": (1,), "refused": (0,), "lost": (0, 1)}[command.fate]
            assert len(stored) in allowed, (command, stored)
        asked = [command.result[0] for command in self.commands if command.kind == "ask" and command.fate == "done"]
        assert len(asked) == len(set(asked))

    @invariant()
    def what_was_recorded_first_stays(self) -> None:
        known = {one.number: first_recorded(one) for one in self._trials() if one.state.is_finished()}
        assert all(known[number] == entry for number, entry in self.first.items())
        self.first = known

    @invariant()
    def trials_are_whole(self) -> None:
        records = {one.number: one for one in self.study.records()}
        assert sorted(records) == list(range(len(records)))
        for trial in self._trials():
            worker = trial.user_attrs.get("crashbo:worker", {})
            if worker.get("kind") == "run" and trial.state == TrialState.COMPLETE and TOLD in trial.user_attrs:
                mine = [one for one in self.commands if one.key == trial.user_attrs[TOLD]]
                assert mine or trial.value == trial.params["x"]

    def _trials(self) -> list[FrozenTrial]:
        return self.study.inner.get_trials(deepcopy=False)


def _pick(trials: list[FrozenTrial], kind: str, pick: int) -> int:
    """A trial that a command may be about; mostly one in the right state."""
    open_, ended = ([one.number for one in trials if one.state.is_finished() == over] for over in (False, True))
    fitting = open_ if kind in ENDINGS else ended
    return fitting[pick % len(fitting)] if fitting and pick % 7 else trials[pick % len(trials)].number


def _check_whole(trial: FrozenTrial, command: Command) -> None:
    """All of an outcome is there, and nothing of another."""
    arguments, marks = command.arguments, trial.user_attrs
    seen = {key.removeprefix("constraint:"): one for key, one in marks.items() if key.startswith("constraint:")}
    assert trial.state == (TrialState.COMPLETE if command.kind == "tell" else TrialState.FAIL)
    assert trial.value == (arguments["objective"] if command.kind == "tell" else None)
    assert seen == arguments.get("constraints", {})
    assert marks.get("crash") == (arguments["reason"] if command.kind == "crash" else None)
    assert marks.get("transient") == (arguments["reason"] if command.kind == "transient" else None)
    assert marks.get("crashbo:told_by", "") == arguments.get("by", "")


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A database, and processes that write."""
    server: Server | None = request.getfixturevalue("server") if request.param == "postgres" else None
    url = f"sqlite:///{tmp_path}/study.db" if server is None else server.url

    def make() -> Study:
        return create_study(Place(url, f"{tmp_path.name}-{next(_names)}"), DEFINITION)

    made = World(make, server)
    yield made
    for actor in made.actors:
        actor.close()


def interleave(world: World, examples: int, steps: int, *, anew: bool = False) -> None:
    machine = type("Interleaved", (Interleavings,), {"world": world})
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not anew,
        database=None,
        phases=[Phase.generate],  # to make an example smaller would take long, with real processes
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=chosen)


def test_interleavings(world: World) -> None:
    interleave(world, examples=3, steps=8)
    assert world.tally.interleavings > 5


@pytest.mark.slow
def test_a_thousand_interleavings_and_two_hundred_kills(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    while world.tally.interleavings < 1000 or world.tally.kills < 200:
        interleave(world, examples=10, steps=20, anew=True)
    with capsys.disabled():
        print(f"\n{world.tally}")


def race(world: World, commands: list[Command]) -> None:
    """Let processes do things at the same time."""
    machine = type("Race", (Interleavings,), {"world": world})()
    number = recording.add(machine.study, {"x": 0.5}, 1.0, {"reach": 1.0})
    ask(machine.study)
    for command in commands:
        command.arguments["number"] = number if command.kind == "correct" else 1
    machine._carry_out([(command, None) for command in commands])
    machine.nothing_is_lost_doubled_or_mixed()
    endings = [command for command in commands if command.kind in ENDINGS]
    assert sum(command.fate == "done" for command in endings) == min(1, len(endings))


@pytest.mark.slow
def test_thirty_races_of_each_kind(world: World) -> None:
    def one(kind: str, **arguments: Any) -> Command:
        return Command(kind, {"key": new_key(), **arguments})

    for _ in range(30):
        tells = [one("tell", objective=cost, constraints={"reach": cost}, by=str(cost)) for cost in (1.0, 2.0)]
        race(world, tells)
        race(world, [one("crash", reason="fell", constraints={"reach": 9.0}), one("transient", reason="no link")])
        costs = (3.0, 4.0, 5.0)
        race(world, [one("correct", status="finished", objective=cost, constraints={"reach": 1.0}) for cost in costs])

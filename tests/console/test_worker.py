"""The computing process: its loop, and the console's end of it."""

import io
import json
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crashbo.console import model as models
from crashbo.console.model import ModelError, ModelProcess
from crashbo.console.worker import serve
from crashbo.errors import InputError
from crashbo.store import recording
from crashbo.store.study import Study
from tests.console.helpers import make_study
from tests.processes import wait_until

ECHO = """
import json, sys
print("a library greets")
first = json.loads(sys.stdin.readline())
print(json.dumps({"kind": "place", **first}), flush=True)
for line in sys.stdin:
    task = json.loads(line)
    if task["kind"] == "die":
        sys.exit(3)
    if task["kind"] == "look":
        print(json.dumps({"kind": "looked"}), flush=True)
    elif task["kind"] == "good":
        print(json.dumps({"kind": "answer", "id": task["id"], "result": {"echo": task["value"]}}), flush=True)
    elif task["kind"] == "bad":
        print(json.dumps({"kind": "answer", "id": task["id"], "problem": "No model yet."}), flush=True)
"""


class Thinker:
    """Looks in three steps; `between` is called before each."""

    def __init__(self, between: Callable[[int], None] = lambda step: None) -> None:
        self.between, self.looks = between, 0

    def look(self) -> Iterator[dict[str, Any]]:
        self.looks += 1
        for step, kind in enumerate(("model", "offer", "best")):
            self.between(step)
            yield {"kind": kind, "look": self.looks, "value": float("nan")}

    def predict(self, params: Any) -> dict[str, Any]:
        if params == "bad":
            raise InputError("`kp` must be a number.")
        if params == "worse":
            raise ZeroDivisionError("oh")
        return {"mean": float("inf"), "params": params}


def run(thinker: Thinker, *tasks: dict[str, Any], inbox: Any = None) -> list[dict[str, Any]]:
    """What is said to some tasks."""
    box = inbox or queue.SimpleQueue()
    for task in tasks:
        box.put(task)
    out = io.StringIO()
    thread = threading.Thread(target=serve, args=(thinker, box, out), daemon=True)
    thread.start()
    thread.join(0.5)
    box.put({"kind": "stop"})
    thread.join(10)
    assert not thread.is_alive()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_look_is_told_step_by_step_without_nan() -> None:
    said = run(Thinker(), {"kind": "look"})
    assert [one["kind"] for one in said] == ["model", "offer", "best"]
    assert said[0]["value"] is None


def test_questions_are_answered_between_the_steps() -> None:
    box: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def between(step: int) -> None:
        if step == 1:
            box.put({"kind": "predict", "id": 7, "params": {"kp": 1}})

    said = run(Thinker(between), {"kind": "look"}, inbox=box)
    assert [one["kind"] for one in said] == ["model", "offer", "answer", "best"]
    assert said[2] == {"kind": "answer", "id": 7, "result": {"mean": None, "params": {"kp": 1}}}


def test_a_new_look_waits_for_the_offer_and_no_longer() -> None:
    box: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    thinker = Thinker()
    thinker.between = lambda step: box.put({"kind": "look"}) if step == 0 and thinker.looks == 1 else None
    said = run(thinker, {"kind": "look"}, inbox=box)
    assert [(one["look"], one["kind"]) for one in said] == [
        *((1, kind) for kind in ("model", "offer")),
        *((2, kind) for kind in ("model", "offer", "best")),
    ]


def test_problems_become_sentences_and_the_loop_goes_on() -> None:
    def between(step: int) -> None:
        if step == 1:
            raise MemoryError("too   much\nof it")

    said = run(
        Thinker(between),
        {"kind": "predict", "id": 1, "params": "bad"},
        {"kind": "predict", "id": 2, "params": "worse"},
        {"kind": "look"},
    )
    assert said[0]["problem"] == "`kp` must be a number."
    assert said[1]["problem"] == "The model failed (ZeroDivisionError: oh)."
    assert [one["kind"] for one in said[2:]] == ["model", "failed"]
    assert said[3]["problem"] == "The model failed (MemoryError: too much of it)."


class Told:
    """Hears what a model process says."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []

    def __call__(self, one: dict[str, Any]) -> None:
        self.said.append(one)

    def wait(self, kind: str, count: int = 1) -> dict[str, Any]:
        heard = lambda: [one for one in self.said if one["kind"] == kind]  # noqa: E731
        wait_until(lambda: len(heard()) >= count, 120)
        return heard()[-1]


@pytest.fixture
def echo(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModelProcess, Told]]:
    """A process that answers without a model, started and told of the study."""
    monkeypatch.setattr(models, "_FIRST_PAUSE", 0.05)
    script = tmp_path / "echo.py"
    script.write_text(ECHO)
    process, told = ModelProcess(study.place, [sys.executable, str(script)]), Told()
    process.start(told)
    told.wait("looked")
    yield process, told
    process.stop()


def test_the_process_is_told_the_study_by_its_input(echo: tuple[ModelProcess, Told], study: Study) -> None:
    assert echo[1].said[0] == {"kind": "place", "url": study.place.url, "study": "arm"}


def test_questions_are_answered_or_refused(echo: tuple[ModelProcess, Told]) -> None:
    process, _ = echo
    assert process.ask("good", value=[1, "ü"]).result(10) == {"echo": [1, "ü"]}
    with pytest.raises(ModelError, match="No model yet"):
        process.ask("bad").result(10)


def test_a_process_that_dies_is_started_again(echo: tuple[ModelProcess, Told]) -> None:
    process, told = echo
    waiting = process.ask("never")
    process.ask("die")
    with pytest.raises(ModelError, match="ended unexpectedly"):
        waiting.result(10)
    assert "started again" in told.wait("failed")["problem"]
    told.wait("looked", 2)
    assert process.ask("good", value=1).result(10) == {"echo": 1}


def test_without_a_process_a_question_is_refused_at_once(study: Study) -> None:
    process = ModelProcess(study.place)
    process.look()
    with pytest.raises(ModelError, match="being started"):
        process.ask("predict", params={}).result(0)


def test_an_answer_that_nobody_waits_for_does_no_harm(echo: tuple[ModelProcess, Told]) -> None:
    process, _ = echo
    process.ask("good", value=1).cancel()
    assert process.ask("good", value=2).result(10) == {"echo": 2}


def test_the_real_process_finds_a_suggestion_and_ends_with_the_console(tmp_path: Path) -> None:
    study = make_study(tmp_path, options={"raw": 64, "samples": 4})
    recording.add(study, {"kp": 2.0, "kd": 0.5}, 1.0, {"reach": 2.0})
    process, told = ModelProcess(study.place), Told()
    process.start(told)
    try:
        assert set(told.wait("offer")["offer"]["params"]) == {"kp", "kd"}
        inner = process._process
        assert inner is not None
        assert inner.stdin is not None
        process._stopped.set()
        inner.stdin.close()  # as when the console is killed
        assert inner.wait(20) == 0
    finally:
        process.stop()

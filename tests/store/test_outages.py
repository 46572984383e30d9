"""A database that goes away, an answer that is lost, a disk that is full: nothing lost, nothing doubled."""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.files import make_definition
from crashbo.store.keeping import folder_of
from crashbo.store.patience import patience_of
from crashbo.store.storage import Place
from crashbo.store.study import Study, counts, create_study, open_study
from tests.processes import wait_until
from tests.store.helpers import QUASI_RANDOM, make_study, start_cli
from tests.store.server import Server

PROGRAM = ("sh", "-c", 'echo "$CRASHBO_TRIAL" >> started; sleep 0.05; echo {x}')
DEFINITION = make_definition({"x": [0.0, 1.0]}, options=QUASI_RANDOM)


def work_through(server: Server, folder: Path, workers: int, trials: int, outages: list[float]) -> Study:
    """Let processes run a study to its end while its server goes away again and again, for so many seconds."""
    place = Place(server.url, folder.name)
    study = create_study(place, DEFINITION)
    options = ("--storage", server.url, "--study", place.study, "--trials", trials)
    started = [start_cli(folder, "run", *options, "--", *PROGRAM) for _ in range(workers)]
    try:
        for nth, seconds in enumerate(outages):
            share = trials * (nth + 1) // (len(outages) + 1)
            wait_until(lambda share=share: len(lines(folder / "started")) >= share)
            server.stop()
            time.sleep(seconds)  # so long is it away
            server.start()
        for process in started:
            process.join(300)
            assert process.exitcode == 0, (folder / "cli.out").read_text()
    finally:
        for process in started:
            process.kill()
    return open_study(study.place)


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def check(study: Study, folder: Path, workers: int, trials: int, outages: int) -> None:
    records = study.records()
    done = [record for record in records if record.status == "finished"]
    assert len(done) == trials
    assert counts(study.definition, records)["pending"] == 0
    assert all(record.objective == record.params["x"] for record in done)
    begun = lines(folder / "started")
    assert len(begun) == len(set(begun))  # none was run twice
    assert {str(record.number) for record in done} == set(begun)  # nor in vain
    said = (folder / "cli.out").read_text()
    assert "Traceback" not in said
    assert "Error" not in said.replace("is away", "")
    away = [line for line in said.splitlines() if " is away (" in line]
    assert 0 < len(away) <= workers * outages  # a line each
    assert not (folder / "crashbo.results").exists()


def test_workers_wait_for_a_server_that_restarts(server: Server, tmp_path: Path) -> None:
    check(work_through(server, tmp_path, 2, 30, [1.0]), tmp_path, 2, 30, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5.0, 60.0])
def test_workers_wait_for_a_server_that_is_long_away(server: Server, tmp_path: Path, seconds: float) -> None:
    check(work_through(server, tmp_path, 4, 60, [seconds]), tmp_path, 4, 60, 1)


@pytest.mark.slow
def test_four_workers_and_two_hundred_trials_through_five_restarts(server: Server, tmp_path: Path) -> None:
    check(work_through(server, tmp_path, 4, 200, [1.0] * 5), tmp_path, 4, 200, 5)


# --- the answer is lost ----------------------------------------------------------------------------------


class Wire:
    """Passes on what is said between clients and a server, and can swallow the answer to a commit."""

    def __init__(self, port: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.swallow, self.swallowed = False, 0
        self._target = port
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                cut = threading.Event()
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(*ends, cut), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, asking: bool, cut: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if asking and self.swallow and b"COMMIT" in data:
                    self.swallow, self.swallowed = False, self.swallowed + 1
                    cut.set()
                elif not asking and cut.is_set():  # the server has committed, and its answer does not arrive
                    break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def wire(server: Server) -> Iterator[tuple[Wire, Study]]:
    """A study behind a wire, with some patience."""
    head, _, tail = server.url.rpartition(":")
    port, _, name = tail.partition("/")
    found = Wire(int(port))
    place = Place(f"{head}:{found.port}/{name}", f"wire-{found.port}")
    create_study(place, make_definition({"x": [0.0, 1.0]}, constraints=["reach"], options=QUASI_RANDOM))
    study = open_study(place)
    patience_of(study.inner).seconds = 30.0
    yield found, study
    found.listener.close()


def test_a_lost_answer_stores_nothing_twice(wire: tuple[Wire, Study]) -> None:
    line, study = wire
    ask(study)
    line.swallow = True
    recording.tell(study, 0, 0.5, {"reach": 1.0})  # committed, unanswered, and found to be one's own
    line.swallow = True
    assert recording.add(study, {"x": 0.5}, 1.0, {"reach": 1.0}) == 1
    line.swallow = True
    recording.correct(study, 0, status="finished", objective=0.7)
    assert line.swallowed == 3
    assert [record.objective for record in study.records()] == [0.7, 1.0]
    assert len(recording.history(study, 0)) == 1


@pytest.mark.parametrize("nth", range(6))
def test_a_lost_answer_while_asking_makes_no_second_trial(wire: tuple[Wire, Study], nth: int) -> None:
    line, study = wire
    storage: Any = study.inner._storage
    from sqlalchemy import event

    left = [nth]

    def begin(connection: object) -> None:
        left[0] -= 1
        line.swallow = line.swallow or left[0] == -1

    event.listen(storage._backend.engine, "begin", begin)
    asked = ask(study)
    assert asked is not None
    assert line.swallowed == 1
    assert [(record.number, record.status) for record in study.records()] == [(0, "pending")]
    assert study.records()[0].params == asked.params


# --- no room on the disk ---------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if made.returncode:
        pytest.skip("a small disk takes the right to mount one")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> Path:
    """Leave no room."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as handle:
        while True:
            handle.write(b"x" * 512)
    return filler


def is_kept(study: Study) -> bool:
    """Whether a result waits in a file."""
    return any(b'"finished"' in path.read_bytes() for path in folder_of(study.place).glob("*.json"))


def test_a_result_is_kept_while_the_disk_is_full(small_disk: Path) -> None:
    study = make_study(small_disk)
    process = start_cli(
        small_disk,
        "run",
        "--trials",
        1,
        "--",
        "sh",
        "-c",
        "touch go; until test -e done; do sleep 0.02; done; echo {x}",
    )
    wait_until(lambda: (small_disk / "go").exists())
    (small_disk / "done-later").touch()
    filler = fill(small_disk)
    (small_disk / "done-later").rename(small_disk / "done")  # the program ends on a full disk
    wait_until(lambda: is_kept(study))
    assert study.records()[0].status == "pending"
    process.kill()  # and its run is lost too
    process.join()
    filler.unlink()
    end = start_cli(small_disk, "run", "--trials", 1, "--", "false")
    end.join(120)
    assert end.exitcode == 0, (small_disk / "cli.out").read_text()
    [record] = study.records()
    assert (record.status, record.objective) == ("finished", record.params["x"])
    assert "stored the result that an earlier run had kept" in (small_disk / "cli.out").read_text()
    assert not folder_of(study.place).exists()


def test_a_run_goes_on_when_there_is_room_again(small_disk: Path) -> None:
    study = make_study(small_disk)
    program = "touch go; until test -e done; do sleep 0.02; done; echo {x}"
    process = start_cli(small_disk, "run", "--trials", 2, "--", "sh", "-c", program)
    wait_until(lambda: (small_disk / "go").exists())
    (small_disk / "done-later").touch()
    filler = fill(small_disk)
    (small_disk / "done-later").rename(small_disk / "done")
    wait_until(lambda: is_kept(study))  # it could not be stored
    filler.unlink()
    process.join(120)
    assert process.exitcode == 0, (small_disk / "cli.out").read_text()
    assert [record.status for record in study.records()] == ["finished"] * 2


def test_nobody_waits_for_a_programs_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from crashbo.store import running
    from crashbo.store.programs import Program

    study, ended, in_time = make_study(tmp_path), threading.Event(), []
    begun = tmp_path / "begun"

    def put_mark(*mark: object) -> None:
        begun.touch()
        in_time.append(ended.wait(60))

    monkeypatch.setattr(running, "put_mark", put_mark)
    finished = lambda asked, ending: ended.set() if ending else None  # noqa: E731
    program = Program(("sh", "-c", f"until test -e '{begun}'; do sleep 0.01; done; echo {{x}}"))
    running.Runner(study, program, trials=1, notice=finished).run()
    assert in_time == [True]
    assert [record.status for record in study.records()] == ["finished"]


def test_what_is_kept_for_another_study_is_left_alone(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    ask(study)
    folder = folder_of(study.place)
    folder.mkdir()
    worker = {"machine": "another", "pid": 1, "started": 1, "token": "not-that-of-the-trial"}
    kept = {"study": "crashbo", "storage": str(study.place), "number": 0, "worker": worker}
    kept |= {"key": "k", "status": "finished", "objective": 0.5, "constraints": {}, "reason": ""}
    (folder / "crashbo-0.json").write_text(json.dumps(kept))
    (folder / "broken.json").write_text("{")
    from crashbo.store.programs import Program
    from crashbo.store.running import Runner

    Runner(study, Program(("echo", "{x}")), trials=1).run()
    assert [record.status for record in study.records()] == ["pending", "finished"]
    assert len(list(folder.iterdir())) == 2


def test_a_run_that_begins_while_the_server_is_away_waits_for_it(server: Server, tmp_path: Path) -> None:
    place = Place(server.url, tmp_path.name)
    create_study(place, DEFINITION)
    server.stop()
    try:
        options = ("--storage", server.url, "--study", place.study, "--trials", 2)
        process = start_cli(tmp_path, "run", *options, "--", *PROGRAM)
        output = tmp_path / "cli.out"
        wait_until(lambda: output.exists() and "waiting for it" in output.read_text())
    finally:
        server.start()
    process.join(120)
    assert process.exitcode == 0, output.read_text()
    assert output.read_text().count("waiting for it") == 1
    assert "s3cret" not in output.read_text()
    assert [record.status for record in open_study(place).records()] == ["finished"] * 2


def test_a_server_that_refuses_is_not_waited_for(postgres: str) -> None:
    study = create_study(Place(postgres, "refused"), DEFINITION)
    patience_of(study.inner).seconds = 60.0
    storage: Any = study.inner._storage
    from crashbo.store.patience import said_when_away

    def look() -> None:
        with storage._backend.engine.connect() as connection:
            connection.exec_driver_sql("SELECT * FROM nowhere")

    begin = time.monotonic()
    with pytest.raises(Exception, match="nowhere") as found:
        storage._backend.patiently(look)
    assert time.monotonic() - begin < 5
    assert said_when_away(found.value) == ""

"""The console over HTTP, with a quick stand-in for the model."""

import csv
import io
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crashbo.console.app import SCRIPTS
from crashbo.console.server import Address, listen, serving
from crashbo.errors import InputError
from crashbo.store import recording
from crashbo.store.study import Study
from tests.console.helpers import Client, QuickModel, make_study, reopen

PARAMS = {"kp": 2.0, "kd": 0.5}


@contextmanager
def console(study: Study, **changes: Any) -> Iterator[tuple[Client, QuickModel]]:
    model = QuickModel(study, **changes)
    with serving(study, model=model) as url:
        yield Client(url).login(), model


def test_the_page_and_its_files_are_there(client: Client) -> None:
    status, page, headers = client.get("/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<script>" not in page
    assert "style=" not in page
    assert "http://" not in page
    assert "https://" not in page
    for name in SCRIPTS:
        assert client.get(f"/{name}.js")[2]["content-type"] == "text/javascript; charset=utf-8"
    assert client.get("/style.css")[0] == client.get("/icon.svg")[0] == 200


def test_scripts_never_make_elements_from_text(client: Client) -> None:
    for name in SCRIPTS:
        script = client.get(f"/{name}.js")[1]
        for danger in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert danger not in script


def test_take_tell_and_see_it(client: Client) -> None:
    number = client.take()
    assert client.state()["offer"] is None or client.state()["counts"]["pending"] == 1
    answer = client.post("/api/tell", {"number": number, "objective": "0.73", "constraints": {"reach": "11.2"}})
    assert answer[:2] == (200, {"number": number})
    state = client.wait(lambda found: found["counts"]["finished"] == 1)
    assert state["trials"][number]["objective"] == 0.73
    state = client.wait(lambda found: found["best"])
    assert state["limits"] == {"objective": [4.0, 0.5, 3.1, 5.2], "reach": [9.0, 1.0, 7.0, 11.0]}
    assert state["relation"] == "Crashes are high values: 90%."


def test_a_crash_with_reason_and_partial_values(client: Client) -> None:
    number = client.take()
    body = {"number": number, "reason": "fell <b>over</b>", "constraints": {"reach": 3}}
    assert client.post("/api/crash", body)[0] == 200
    found = client.wait(lambda state: state["counts"]["crashed"] == 1)["trials"][number]
    assert (found["reason"], found["constraints"]) == ("fell <b>over</b>", {"reach": 3.0})


def test_skip_gives_another_suggestion(client: Client) -> None:
    first = client.wait(lambda state: state["offer"])["offer"]
    assert client.post("/api/skip", {"offer": first["key"], "by": "Ben"})[0] == 200
    second = client.wait(lambda state: state["offer"])["offer"]
    assert second["params"] != first["params"]
    assert client.state()["trials"][0]["status"] == "skipped"


def test_own_values_with_a_prediction_first(client: Client) -> None:
    number = client.take()
    client.post("/api/tell", {"number": number, "objective": 1, "constraints": {"reach": 1}})
    status, found, _ = client.post("/api/predict", {"params": {"kp": "5", "kd": 0.5}})
    assert (status, found["objective"]) == (200, [1.0, 0.5])
    client.wait(lambda state: state["counts"]["pending"] == 0)
    status, answer, _ = client.post("/api/start", {"params": {"kp": "5", "kd": 0.5}, "by": "Anna"})
    assert (status, answer) == (200, {"number": 1})
    assert client.state()["trials"][1]["params"] == {"kp": 5.0, "kd": 0.5}


def test_correct_delete_and_restore(client: Client) -> None:
    number = client.take()
    client.post("/api/crash", {"number": number, "reason": "fell"})
    right = {"number": number, "status": "finished", "objective": "1.5", "constraints": {"reach": "2"}}
    assert client.post("/api/correct", right)[0] == 200
    for status, seen in (("deleted", "deleted"), ("restored", "finished")):
        assert client.post("/api/correct", {"number": number, "status": status})[0] == 200
        found = client.wait(lambda state, seen=seen: state["trials"][number]["status"] == seen)["trials"][number]
    assert [entry["status"] for entry in found["history"]] == ["crashed", "finished", "deleted", "restored"]


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        ("tell", {"objective": "0,5", "constraints": {"reach": ""}}, {"objective", "constraint:reach"}),
        ("tell", {"objective": "fast", "constraints": {"reach": 1}}, {"objective"}),
        ("crash", {"reason": "x" * 1001}, {"reason"}),
        ("crash", {"constraints": {"reach": "much"}}, {"constraint:reach"}),
        ("start", {"params": {"kp": 11, "kd": None}}, {"param:kp", "param:kd"}),
    ],
)
def test_wrong_input_is_refused_beside_its_field(client: Client, path: str, body: Any, fields: set[str]) -> None:
    number = client.take()
    status, answer, _ = client.post(f"/api/{path}", body if path == "start" else {"number": number, **body})
    assert (status, set(answer["fields"])) == (422, fields)
    state = client.state()
    assert (state["counts"]["pending"], len(state["trials"])) == (1, 1)
    assert state["trials"][0]["reason"] == ""


@pytest.mark.parametrize("path", ["start", "predict"])
def test_own_values_that_break_a_constraint_between_parameters_are_refused(tmp_path: Path, path: str) -> None:
    study = make_study(tmp_path, parameter_constraints=["kp * kd <= 4", "kp >= 1"])
    with serving(study, model=QuickModel(study)) as url:
        client = Client(url).login()
        status, answer, _ = client.post(f"/api/{path}", {"params": {"kp": 9, "kd": 0.5}})
        words = "These values must satisfy the study's parameter constraints; they break “kp * kd <= 4”."
        assert (status, answer) == (422, {"error": words, "fields": {"params": words}})
        status, answer, _ = client.post(f"/api/{path}", {"params": {"kp": 99, "kd": 0.5}})
        assert (status, set(answer["fields"])) == (422, {"param:kp"})
        assert client.state()["trials"] == []
        assert client.post("/api/start", {"params": {"kp": 8, "kd": 0.5}})[0] == 200


def test_a_suggestion_is_taken_once_by_many_at_once(client: Client) -> None:
    offer = client.wait(lambda state: state["offer"])["offer"]
    answers: list[int] = []

    def press() -> None:
        answers.append(client.post("/api/take", {"offer": offer["key"]})[0])

    threads = [threading.Thread(target=press) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [409] * 7
    assert client.state()["counts"]["pending"] == 1


def test_two_consoles_on_one_study_share_everything(study: Study) -> None:
    with console(study) as (one, _), console(reopen(study)) as (other, _):
        offers = [client.wait(lambda state: state["offer"])["offer"] for client in (one, other)]
        assert offers[0]["params"] == offers[1]["params"]
        assert one.post("/api/take", {"offer": offers[0]["key"]})[0] == 200
        status, answer, _ = other.post("/api/take", {"offer": offers[1]["key"]})
        assert status == 409
        assert "taken" in answer["error"]
        other.wait(lambda state: state["counts"]["pending"] == 1)


def test_after_a_result_the_old_suggestion_cannot_be_taken(study: Study) -> None:
    with console(study) as (client, model):
        number = client.take()
        offer = client.wait(lambda state: state["offer"] and state["offer"]["current"])["offer"]
        model.fall_silent()  # it computes for ever
        client.post("/api/tell", {"number": number, "objective": 1, "constraints": {"reach": 1}})
        status, answer, _ = client.post("/api/take", {"offer": offer["key"]})
        assert (status, answer["error"].split(".")[0]) == (
            409,
            "A newer suggestion is being computed from the latest result",
        )
        state = client.wait(lambda found: found["counts"]["finished"] == 1)
        assert not state["offer"]["current"]
        assert state["model"]["busy"]


def test_results_of_other_processes_do_not_block_the_suggestion(study: Study) -> None:
    with console(study) as (client, model):
        offer = client.wait(lambda state: state["offer"])["offer"]
        model.fall_silent()
        recording.add(reopen(study), {"kp": 9.0, "kd": 0.9}, 1.0, {"reach": 1.0})
        client.wait(lambda state: state["counts"]["finished"] == 1 and state["model"]["busy"])
        assert client.post("/api/take", {"offer": offer["key"]})[0] == 200


def test_results_are_recorded_while_the_model_is_broken(study: Study) -> None:
    with console(study) as (client, model):
        number = client.take()
        model.break_down("The model cannot be fitted.")
        state = client.wait(lambda found: found["model"]["problem"])
        assert (state["offer"], state["model"]["busy"]) == (None, False)
        assert client.post("/api/crash", {"number": number, "reason": "fell"})[0] == 200
        status, answer, _ = client.post("/api/predict", {"params": PARAMS})
        assert (status, answer["error"]) == (503, "The model is broken.")
        assert client.post("/api/start", {"params": PARAMS})[0] == 200
        assert client.wait(lambda found: found["counts"]["crashed"] == 1)["counts"]["pending"] == 1


def test_a_crash_never_waits_for_the_model(study: Study) -> None:
    """The model hangs in a question and in a look; the write is stored all the same, and the page is served."""
    hung, over, answer = threading.Event(), threading.Event(), Future[dict[str, Any]]()

    def hang() -> None:
        hung.set()
        over.wait(60)

    with console(study) as (client, model):
        number = client.take()
        model.ask = lambda kind, **details: answer  # type: ignore[method-assign]
        model.look = hang  # type: ignore[method-assign]
        for path in ("predict", "start"):  # the second makes the hub call `look`
            threading.Thread(target=client.post, args=(f"/api/{path}", {"params": PARAMS}), daemon=True).start()
        assert hung.wait(20)
        assert client.post("/api/crash", {"number": number, "reason": "fell"})[0] == 200
        assert not over.is_set()
        assert reopen(study).records()[number].status == "crashed"
        assert client.get("/api/state")[0] == client.get("/")[0] == 200
        over.set()
        answer.set_result({})


def test_news_come_without_being_asked_for(client: Client) -> None:
    client.wait(lambda state: state["offer"])
    with socket.create_connection((client.host, client.port), timeout=10) as wire:
        head = f"GET /api/events HTTP/1.1\r\nHost: {client.host}:{client.port}\r\nCookie: {client.cookie}\r\n\r\n"
        wire.sendall(head.encode())
        heard = b""
        while b"hello" not in heard:
            heard += wire.recv(4096)
        assert b"text/event-stream" in heard
        client.post("/api/start", {"params": PARAMS})
        heard = b""
        while b"news" not in heard:
            heard += wire.recv(4096)


def test_streams_end_whole_when_the_console_stops(study: Study) -> None:
    with console(study) as (client, _):
        wire = socket.create_connection((client.host, client.port), timeout=30)
        head = f"GET /api/events HTTP/1.1\r\nHost: {client.host}:{client.port}\r\nCookie: {client.cookie}\r\n\r\n"
        wire.sendall(head.encode())
        heard = b""
        while b"hello" not in heard:
            heard += wire.recv(4096)
    with wire, wire.makefile("rb") as rest:
        assert rest.read().endswith(b"0\r\n\r\n")  # the last chunk: it was not cut off


def test_only_changed_trials_are_sent(client: Client) -> None:
    client.post("/api/start", {"params": PARAMS})
    state = client.wait(lambda found: found["total"] == 1)
    client.post("/api/start", {"params": {"kp": 9, "kd": 0.1}})
    client.wait(lambda found: found["total"] == 2)
    path = f"/api/state?boot={state['boot']}&since={state['revision']}"
    assert [row["number"] for row in client.get(path)[1]["trials"]] == [1]
    assert len(client.get("/api/state?boot=other&since=9999")[1]["trials"]) == 2
    for nonsense in ("-1", "x", "9" * 400, "%00", "1;drop table trials"):
        assert client.get(f"/api/state?since={nonsense}".replace(" ", "%20"))[0] == 200


def test_nothing_is_lost_when_the_console_is_restarted(study: Study) -> None:
    with console(study) as (client, _):
        number = client.take()
        client.post("/api/start", {"params": PARAMS, "by": "Anna"})
    with console(reopen(study)) as (client, _):
        state = client.state()
        assert [row["status"] for row in state["trials"]] == ["pending", "pending"]
        assert state["trials"][1]["by"] == "Anna"
        assert client.post("/api/crash", {"number": number, "reason": "fell"})[0] == 200


def test_the_table_can_be_downloaded_and_imported(client: Client, study: Study) -> None:
    recording.add(reopen(study), PARAMS, -1.5, {"reach": 2.0})
    recording.add(reopen(study), PARAMS, None, {}, "=HYPERLINK(1)")
    status, text, headers = client.get("/api/trials.csv")
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="trials.csv"'
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (rows[0]["objective"], rows[1]["reason"]) == ("-1.5", "'=HYPERLINK(1)")


def test_the_picture_takes_axes_of_the_study_only(client: Client) -> None:
    assert client.post("/api/picture", {"x": "kp", "y": "kd", "params": PARAMS})[1]["columns"] == 41
    assert client.post("/api/picture", {"x": "kp", "y": "", "params": PARAMS})[1]["columns"] == 101
    next_ = client.post("/api/picture", {"x": "kp", "y": "kd", "params": PARAMS, "acquisition": True})[1]
    assert len(next_["layers"]["acquisition"]) == 41 * 41
    assert client.post("/api/picture", {"x": "kp", "y": "kd", "params": PARAMS, "acquisition": "yes"})[0] == 422
    for x, y in (("kp", "kp"), ("other", "kd"), (["kp"], "kd"), (None, "kd")):
        assert client.post("/api/picture", {"x": x, "y": y, "params": PARAMS})[0] == 422


def test_a_study_that_cannot_be_read_is_a_sentence(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from crashbo.store.storage import StudyError

    with console(study) as (client, _):
        client.wait(lambda state: state["offer"])

        def broken(number: int) -> Any:
            raise StudyError("The database is locked by another process; nothing was written. Try again in a moment.")

        monkeypatch.setattr(type(study), "trial", lambda self, number: broken(number))
        status, answer, _ = client.post("/api/crash", {"number": 0})
        assert (status, answer["error"][:22]) == (503, "The database is locked")


def test_an_unexpected_error_shows_no_more_than_a_sentence(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> str:
        raise RuntimeError("secret path /etc/shadow")

    monkeypatch.setattr("crashbo.console.app.export_csv", broken)
    status, answer, headers = client.get("/api/trials.csv")
    assert status == 500
    assert "secret" not in json.dumps(answer)
    assert "content-security-policy" in headers
    assert client.get("/api/state")[0] == 200


def test_a_port_in_use_is_explained() -> None:
    with listen(Address(port=0)) as taken:
        taken.listen()
        with pytest.raises(InputError, match="--port 0"):
            listen(Address(port=taken.getsockname()[1]))


def test_strange_names_are_only_text(tmp_path: Path) -> None:
    name = '<img src=x onerror="alert(1)">'
    study = make_study(tmp_path, parameters={name: [0, 1], "constructor": [0, 1], "__proto__": [0, 1]}, constraints=[])
    with console(study) as (client, _):
        assert client.state()["info"]["parameters"][0]["name"] == name
        assert client.post("/api/start", {"params": {name: 1, "constructor": 0, "__proto__": 0.5}})[0] == 200

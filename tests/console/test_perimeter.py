"""Tokens that are guessed, cookies of others, sockets that are only held, requests that come twice, HTTPS."""

import json
import shutil
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from crashbo.console import app, doors
from crashbo.console.server import Address, serving
from crashbo.errors import InputError
from crashbo.store import recording
from crashbo.store.study import Study
from tests.console.helpers import Client, QuickModel, make_study, reopen

START = {"params": {"kp": 1.0, "kd": 0.5}}


# --- who gets in -----------------------------------------------------------------------------------


def test_this_machine_needs_the_token_too(study: Study) -> None:
    with serving(study, model=QuickModel(study)) as url:
        assert "#token=" in url
        stranger = Client(url)
        assert stranger.get("/api/state")[0] == 401
        assert stranger.post("/api/start", START)[0] == 401
        assert stranger.login().get("/api/state")[0] == 200
    with serving(study, Address(port=0, without_token=True), model=QuickModel(study)) as url:
        assert url.endswith("/")
        assert Client(url).get("/api/state")[0] == 200


def test_guessing_tokens_is_limited_and_locks_no_one_out(study: Study) -> None:
    with serving(study, model=QuickModel(study)) as url:
        known = Client(url).login()
        guesses = [known.post("/api/login", {"token": f"guess-{n}"})[0] for n in range(15)]
        assert guesses[:10] == [401] * 10
        assert set(guesses[10:]) == {429}
        assert known.get("/api/state", Authorization="Bearer guess")[0] == 429
        assert known.get("/api/state")[0] == 200  # whoever is in stays in


def test_wrong_headers_count_as_guesses(study: Study) -> None:
    with serving(study, model=QuickModel(study)) as url:
        client = Client(url)
        found = [client.get("/api/state", Authorization=f"Bearer {n}")[0] for n in range(12)]
        assert found == [401] * 10 + [429] * 2


@pytest.mark.parametrize(
    "foreign", ["a=b=c;;=;", "{bad}=1", "x\x7f=1", 'q="unclosed', "[]=;", "a,b=1", "é=1", "crashbo_session_1=x"]
)
def test_a_foreign_malformed_cookie_locks_no_one_out(client: Client, foreign: str) -> None:
    for cookie in (f"{foreign}; {client.cookie}", f"{client.cookie}; {foreign}"):
        assert client.get("/api/state", Cookie=cookie.encode("latin-1").decode("latin-1"))[0] == 200


def test_an_allowed_host_needs_the_token(study: Study) -> None:
    with serving(study, Address(port=0, allowed=("robot.lab",)), model=QuickModel(study)) as url:
        assert Client(url).get("/api/state", Host="robot.lab")[0] == 401
    with (
        pytest.raises(InputError, match="must come alone"),
        serving(study, Address(port=0, allowed=("robot.lab",), without_token=True)),
    ):
        pass


def test_the_cookie_is_secure_behind_https(study: Study) -> None:
    with serving(study, Address(port=0, allowed=("robot.lab",)), model=QuickModel(study)) as url:
        client = Client(url)
        token = {"token": client.token}
        plain = client.post("/api/login", token)[2]["set-cookie"]
        proxied = client.post("/api/login", token, Host="robot.lab", Origin="https://robot.lab")[2]["set-cookie"]
        forwarded = client.post("/api/login", token, X_Forwarded_Proto="https")[2]["set-cookie"]
        assert "Secure" not in plain
        assert "Secure" in proxied
        assert "Secure" in forwarded


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    kind = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    subprocess.run([openssl, "req", "-x509", *kind, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def test_https_with_a_certificate(study: Study, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with serving(study, Address(port=0, certificate=cert, key=key), model=QuickModel(study)) as url:
        assert url.startswith("https://")
        client = Client(url)
        assert "Secure" in client.post("/api/login", {"token": client.token})[2]["set-cookie"]
        assert client.login().get("/api/state")[0] == 200
    for wrong in (Address(port=0, certificate=key), Address(port=0, certificate=cert), Address(port=0, key=key)):
        with pytest.raises(InputError, match="--tls"), serving(study, wrong):
            pass


# --- who only holds the line -------------------------------------------------------------------------


def test_three_hundred_idle_sockets_do_not_close_the_door(client: Client) -> None:
    held = [socket.create_connection((client.host, client.port)) for _ in range(350)]
    try:
        assert client.get("/api/state")[0] == 200
        for wire in held[-100:]:
            wire.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")  # and never goes on
        assert client.get("/api/state")[0] == 200
    finally:
        for wire in held:
            wire.close()


def test_a_head_or_a_body_must_come_soon(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "HEADER_SECONDS", 0.4)
    monkeypatch.setattr(app, "_BODY_SECONDS", 0.4)
    with socket.create_connection((client.host, client.port), timeout=10) as wire:
        wire.sendall(b"GET / HTTP/1.1\r\n")
        assert wire.recv(100) == b""  # the console has hung up
    head = (
        f"POST /api/start HTTP/1.1\r\nHost: {client.host}\r\nX-CrashBO: 1\r\nCookie: {client.cookie}\r\n"
        "Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
    )
    with socket.create_connection((client.host, client.port), timeout=10) as wire:
        wire.sendall(head.encode())
        assert b" 408 " in wire.recv(1000)
    events = f"GET /api/events HTTP/1.1\r\nHost: {client.host}\r\nCookie: {client.cookie}\r\n\r\n"
    with socket.create_connection((client.host, client.port), timeout=10) as wire:
        wire.sendall(events.encode())
        with socket.create_connection((client.host, client.port), timeout=10) as idle:
            assert idle.recv(100) == b""  # its time is over; listening is no idleness
        client.post("/api/start", START)
        heard = b""
        while b"news" not in heard:
            heard += wire.recv(4096)


# --- what comes twice --------------------------------------------------------------------------------


def test_a_double_click_starts_one_trial(client: Client, study: Study) -> None:
    answers: list[Any] = []

    def press() -> None:
        answers.append(client.post("/api/start", START, Idempotency_Key="one-press")[1]["number"])

    threads = [threading.Thread(target=press) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [0] * 6
    assert len(reopen(study).records()) == 1
    assert client.post("/api/start", START, Idempotency_Key="another")[1]["number"] == 1
    other = {"params": {"kp": 2.0, "kd": 0.5}}
    assert client.post("/api/start", other, Idempotency_Key="another")[0] == 422


@pytest.mark.parametrize("name", ["take", "skip"])
def test_a_repeated_claim_is_the_same_trial(client: Client, study: Study, name: str) -> None:
    offer = client.wait(lambda state: state["offer"] and state["offer"]["current"])["offer"]["key"]
    first = client.post(f"/api/{name}", {"offer": offer}, Idempotency_Key="mine")
    again = client.post(f"/api/{name}", {"offer": offer}, Idempotency_Key="mine")
    assert (first[0], again[0]) == (200, 200)
    assert first[1] == again[1]
    assert client.post(f"/api/{name}", {"offer": offer}, Idempotency_Key="theirs")[0] == 409
    assert len(reopen(study).records()) == 1


def test_a_repeated_result_is_stored_once(client: Client, study: Study) -> None:
    number = client.post("/api/start", START)[1]["number"]
    crash = {"number": number, "reason": "fell", "by": "Ada"}
    for _ in range(2):
        assert client.post("/api/crash", crash, Idempotency_Key="k1")[0] == 200
    assert reopen(study).trial(number).user_attrs["crashbo:told_by"] == "Ada"
    correction = {"number": number, "status": "finished", "objective": 1, "constraints": {"reach": 1}, "version": 0}
    for _ in range(2):
        assert client.post("/api/correct", correction, Idempotency_Key="k2")[0] == 200
    assert len(recording.history(reopen(study), number)) == 1


def test_corrections_carry_the_version_they_correct(client: Client, study: Study) -> None:
    number = client.post("/api/start", START)[1]["number"]
    client.post("/api/crash", {"number": number})
    assert client.state()["trials"][number]["version"] == 0
    body = {"number": number, "status": "deleted", "version": 0}
    assert client.post("/api/correct", body)[0] == 200
    status, answer, _ = client.post("/api/correct", body | {"status": "restored"})
    assert (status, "meanwhile" in answer["error"]) == (409, True)
    assert client.post("/api/correct", body | {"status": "restored", "version": 1})[0] == 200
    for wrong in (-1, "1", True, 2**31):
        assert client.post("/api/correct", body | {"version": wrong})[0] == 422


@pytest.mark.parametrize("key", ["", "x" * 101, "a b", "é"])
def test_a_key_must_be_a_short_text(client: Client, study: Study, key: str) -> None:
    assert client.post("/api/start", START, Idempotency_Key=key)[0] == 400
    assert reopen(study).records() == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"params": {"kp": 1, "kd": 0.5}, "by": "\\ud800"}',
        b'{"params": {"kp": "\\udfff", "kd": 0.5}}',
        b'{"params": {"\\ud800": 1}}',
    ],
)
def test_half_a_character_is_refused(client: Client, study: Study, body: bytes) -> None:
    status, answer, _ = client.post("/api/start", body)
    assert (status, "JSON" in json.dumps(answer)) == (400, True)
    assert reopen(study).records() == []


def test_two_studies_do_not_share_keys(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        study = make_study(tmp_path / name)
        with serving(study, model=QuickModel(study)) as url:
            assert Client(url).login().post("/api/start", START, Idempotency_Key="same")[1]["number"] == 0

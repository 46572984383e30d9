"""Attacks: all refused, nothing written, and the server alive."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from crashbo.console.security import BODY_LIMIT, Guesses, Policy, is_loopback, make_policy, refuse
from crashbo.console.server import Address, serving
from crashbo.errors import InputError
from crashbo.store.study import Study
from tests.console.helpers import Client, QuickModel, make_study, reopen

START = {"params": {"kp": 1.0, "kd": 0.5}}
TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study that stays empty whatever is tried."""
    return make_study(tmp_path_factory.mktemp("attacked"))


@pytest.fixture(scope="module")
def client(study: Study) -> Iterator[Client]:
    """A console for this machine only, and someone who has opened its link."""
    with serving(study, model=QuickModel(study)) as url:
        yield Client(url).login()


@pytest.fixture(scope="module")
def guarded(study: Study) -> Iterator[Client]:
    """A console that demands a token."""
    with serving(study, Address(port=0, token=TOKEN), model=QuickModel(study)) as url:
        yield Client(url)


@pytest.fixture(autouse=True)
def forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong tokens of one test do not count in the next."""
    monkeypatch.setattr(Guesses, "too_many", lambda self, client: False)


def unharmed(client: Client, study: Study, **headers: str) -> None:
    """Nothing was written, and the server still answers."""
    assert reopen(study).records() == []
    assert client.get("/api/state", **headers)[0] == 200


# --- cross-site ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://127.0.0.1.evil.example"},
        {"Origin": "file://"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"X_CrashBO": None},
        {"X_CrashBO": "0"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": None},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8765"},
        {"Host": "localhost.evil.example"},
        {"Host": "127.0.0.1:99999999"},
        {"Host": ""},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["start"])
def test_cross_site_writes_are_refused(client: Client, study: Study, path: str, headers: dict[str, Any]) -> None:
    status, answer, found = client.post(f"/api/{path}", START, **headers)
    assert status in (403, 415, 421)
    assert "frame-ancestors 'none'" in found["content-security-policy"]
    assert "access-control-allow-origin" not in found
    assert set(answer) == {"error"}
    unharmed(client, study)


def test_every_write_is_guarded(client: Client, study: Study) -> None:
    for name in ("take", "skip", "start", "tell", "crash", "transient", "correct", "predict", "picture", "login"):
        assert client.post(f"/api/{name}", {}, Origin="http://evil.example")[0] == 403
        assert client.post(f"/api/{name}", {}, X_CrashBO=None)[0] == 403
        assert client.get(f"/api/{name}")[0] == 405
    unharmed(client, study)


def test_other_sites_cannot_read(client: Client) -> None:
    for path in ("/api/state", "/api/trials.csv", "/api/events"):
        assert client.get(path, Sec_Fetch_Site="cross-site")[0] == 403
        assert client.get(path, Host="evil.example")[0] == 421
    assert client.get("/", Host="evil.example")[0] == 421
    found = client.get("/api/state")[2]
    assert found["cross-origin-resource-policy"] == "same-origin"


def test_a_script_without_a_browser_may_write(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    with serving(study, model=QuickModel(study)) as url:
        client = Client(url)
        shown = {"Authorization": f"Bearer {client.token}", "Content-Type": "application/json"}
        assert client.send("POST", "/api/start", json.dumps(START).encode(), shown)[0] == 200
        assert (
            client.send("POST", "/api/start", json.dumps(START).encode(), shown | {"Origin": "http://e.com"})[0] == 403
        )


def test_other_methods_are_refused(client: Client, study: Study) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert client.send(method, "/api/start", b"{}", {})[0] == 405
    unharmed(client, study)


def test_every_answer_carries_the_headers(client: Client) -> None:
    for path in ("/", "/app.js", "/api/state", "/nothing"):
        found = client.get(path)[2]
        policy = found["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "no-referrer"
        assert found["cache-control"] == "no-store"


# --- the token -------------------------------------------------------------------------------------


def test_without_the_token_nothing_works(guarded: Client, study: Study) -> None:
    for name in ("state", "events", "trials.csv"):
        assert guarded.get(f"/api/{name}")[0] == 401
    for name in ("take", "start", "tell", "crash", "correct", "predict"):
        assert guarded.post(f"/api/{name}", START)[0] == 401
    assert guarded.get("/")[0] == 200  # the page itself holds nothing
    unharmed(guarded, study, Authorization=f"Bearer {TOKEN}")


@pytest.mark.parametrize("token", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "x" * 5000, "\x00"])
def test_a_wrong_token_is_refused(guarded: Client, study: Study, token: str) -> None:
    status, answer, headers = guarded.post("/api/login", {"token": token})
    assert status in (401, 422)
    assert TOKEN not in str(answer)
    assert "set-cookie" not in headers
    for header in (f"Bearer {token.encode('ascii', 'replace').decode()}".strip("\x00"), "Basic eDp4", "Bearer"):
        assert guarded.get("/api/state", Authorization=header)[0] == 401
    assert guarded.get("/api/state", Cookie=f"crashbo_session_{guarded.port}=wrong; a=b")[0] == 401
    assert guarded.get("/api/state", Cookie=f"crashbo_session_{guarded.port}={TOKEN}")[0] == 401
    unharmed(guarded, study, Authorization=f"Bearer {TOKEN}")


def test_the_right_token_opens_by_cookie_and_by_header(guarded: Client) -> None:
    status, _, headers = guarded.post("/api/login", {"token": TOKEN})
    assert status == 200
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert guarded.get("/api/state", Cookie=cookie.partition(";")[0])[0] == 200
    asked = {"params": {"kp": 11, "kd": 0}}  # refused, but only once it is read
    assert guarded.post("/api/start", asked, Authorization=f"Bearer {TOKEN}")[0] == 422


def test_the_token_alone_does_not_open_cross_site_writes(guarded: Client, study: Study) -> None:
    headers = guarded.post("/api/login", {"token": TOKEN})[2]
    cookie = headers["set-cookie"].partition(";")[0]
    assert guarded.post("/api/start", START, Cookie=cookie, Origin="http://evil.example")[0] == 403
    unharmed(guarded, study, Cookie=cookie)


# --- bodies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b'{"params": NaN}',
        b'{"params": {"kp": Infinity, "kd": 1}}',
        b"[" * 50_000,
        b'{"params":' * 5000,
        b'"text"',
        b"[1]",
        b"null",
        b'{"params": {"kp": 1, "kd": 0.5}, "path": "../../etc/passwd"}',
        b'{"params": {"kp": 1}}',
        b'{"params": {"kp": {"a": 1}, "kd": [1]}}',
        b'{"params": {"kp": 1, "kd": 0.5}, "by": 5}',
        b'{"params": {"kp": 1, "kd": 0.5}, "by": "' + b"x" * 61 + b'"}',
        b'{"params": {"kp": 1e308, "kd": 1e-400}}',
        b'{"params": {"kp": ' + b"9" * 4000 + b', "kd": 1}}',
        b'{"params": {"kp": "1; DROP TABLE trials", "kd": "1"}}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_malformed_bodies_are_refused(client: Client, study: Study, body: bytes) -> None:
    status, answer, _ = client.post("/api/start", body)
    assert status in (400, 422)
    assert "Traceback" not in str(answer)
    unharmed(client, study)


def test_oversized_bodies_are_refused(client: Client, study: Study) -> None:
    body = b'{"params": {"kp": 1, "kd": 0.5}, "by": "' + b"x" * BODY_LIMIT + b'"}'
    assert client.post("/api/start", body)[0] == 413
    unharmed(client, study)


def test_endless_bodies_are_cut_off(client: Client, study: Study) -> None:
    head = (
        f"POST /api/start HTTP/1.1\r\nHost: {client.host}:{client.port}\r\nX-CrashBO: 1\r\nCookie: {client.cookie}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection((client.host, client.port), timeout=20) as wire:
        wire.sendall(head.encode())
        answer = b""
        try:
            for _ in range(64):
                wire.sendall(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
            answer = wire.recv(4096)
        except OSError:
            pass
    assert answer == b"" or b" 413 " in answer
    unharmed(client, study)


@pytest.mark.parametrize(
    "text",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"POST /api/start HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
    ],
    ids=lambda text: repr(text[:30]),
)
def test_malformed_requests_do_no_harm(client: Client, study: Study, text: bytes) -> None:
    with socket.create_connection((client.host, client.port), timeout=10) as wire:
        try:
            wire.sendall(text)
            wire.shutdown(socket.SHUT_WR)
            assert b" 200 " not in wire.recv(4096)
        except OSError:
            pass
    unharmed(client, study)


# --- paths -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/static/../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/app.js/../../server.py",
        "/app.js%00.py",
        "//etc/passwd",
        "/api/../server.py",
        "/server.py",
        "/index.html",
        "/api/trials.csv/..",
        "/api/state/",
    ],
)
def test_paths_reach_nothing(client: Client, study: Study, path: str) -> None:
    status, answer, _ = client.get(path)
    assert (status, set(answer)) == (404, {"error"})
    unharmed(client, study)


# --- the rules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *((host, True) for host in ("127.0.0.1", "127.3.2.1", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.1.5", "robot.lan")),
    ],
)
def test_a_token_is_drawn_everywhere(host: str, local: bool) -> None:
    assert is_loopback(host) == local
    policy = make_policy(host, 8765)
    assert len(policy.token) >= 32
    assert policy.token != make_policy(host, 8765).token


def test_no_token_is_for_this_machine_only() -> None:
    assert make_policy("127.0.0.1", 8765, without_token=True).token == ""
    refused: list[dict[str, Any]] = [{"host": "0.0.0.0"}, {"allowed": ["robot.lab"]}, {"token": TOKEN}]
    for more in refused:
        with pytest.raises(InputError, match="`--no-token` must come alone"):
            make_policy(**{"host": "127.0.0.1", "port": 8765, "without_token": True} | more)


def test_a_short_token_is_refused() -> None:
    with pytest.raises(InputError, match="at least 16 characters; got 5"):
        make_policy("127.0.0.1", 8765, token="short")


def why(policy: Policy, host: str) -> int | None:
    found = refuse(policy, "GET", "/", Headers({"host": host}))
    return None if found is None else found[0]


def test_hosts_that_a_web_site_could_point_here_are_refused() -> None:
    local, everywhere = make_policy("127.0.0.1", 8765), make_policy("0.0.0.0", 8765, allowed=["Robot.Lab"])
    for host in ("localhost:8765", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST", "localhost:9000"):
        assert why(local, host) is None
    for host in ("192.168.1.5:8765", "[fe80::1]:8765", "robot.lab", "127.0.0.1"):
        assert why(everywhere, host) is None
    for host in ("192.168.1.5:8765", "evil.example", "", "localhost@evil.example", "[::1", ":8765", "localhost:x"):
        assert why(local, host) == 421
    for host in ("evil.example:8765", "1.2.3.4.evil.example", "robot.lab.evil.example"):
        assert why(everywhere, host) == 421

"""Studies, a quick stand-in for the model, and a plain HTTP client."""

import http.client
import json
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from crashbo.console.model import ModelError
from crashbo.console.snapshot import Reader
from crashbo.store.files import make_definition
from crashbo.store.storage import find_place
from crashbo.store.study import Study, create_study, open_study
from tests.processes import wait_until

PARAMETERS: dict[str, Any] = {"kp": {"low": 0, "high": 10, "unit": "N/m"}, "kd": [0, 1]}


_made: dict[str, bytes] = {}  # files of empty studies: making the tables takes a while


def make_study(folder: Path, **changes: Any) -> Study:
    """A study of two parameters and a constraint in a file of its own."""
    settings: dict[str, Any] = {"parameters": PARAMETERS, "constraints": ["reach"]} | changes
    file, key = folder / "study.db", repr(settings)
    place = find_place(str(file), "arm")
    if key not in _made:
        create_study(place, make_definition(**settings))
        _made[key] = file.read_bytes()
    file.write_bytes(_made[key])
    return open_study(place, quick=True)


def reopen(study: Study) -> Study:
    """The same study through another connection, as another process has it."""
    return open_study(study.place, quick=True)


class QuickModel:
    """Suggests points of a sequence at once; predicts a plane. Computes in the thread that asks."""

    def __init__(self, study: Study, *, silent: bool = False) -> None:
        self.study, self.silent = reopen(study), silent
        self.looks = 0
        self.stopped = False
        self.release = threading.Event()
        self._reader = Reader(self.study)
        self._thinking = threading.Lock()
        self._tell: Callable[[dict[str, Any]], None] = lambda said: None

    def start(self, tell: Callable[[dict[str, Any]], None]) -> None:
        """Begin."""
        self._tell = tell
        self._think()

    def look(self) -> None:
        """Look in a thread: the hub holds its lock."""
        self.looks += 1
        threading.Thread(target=self._think, daemon=True).start()

    def say(self, **said: Any) -> None:
        """Say anything, as the model would."""
        self._tell(said)

    def fall_silent(self) -> None:
        """Say nothing more once all that was being thought has been said."""
        with self._thinking:
            self.silent = True

    def break_down(self, problem: str) -> None:
        """Fail for good."""
        self.fall_silent()
        self.say(kind="failed", problem=problem)

    def _think(self) -> None:
        with self._thinking:
            if not self.silent:
                self._say_all()

    def _say_all(self) -> None:
        seen = self._reader.read()
        told = [record for record in seen.records if record.status in ("finished", "crashed")]
        about = {"basis": seen.basis, "count": len(seen.rows)}
        params = self.study.definition.space.sobol(len(seen.rows) + 1, 0)[-1]
        self.say(kind="model", ready=bool(told), problem="", **about)
        limit = {"thresholds": {"objective": 4.0}, "deviations": {"objective": 0.5}}
        beliefs = {"mode": "gain", "why": "gain", "success_probability": 0.75, **limit}
        expected = self._expected(params) if told else {}
        self.say(kind="offer", offer={"params": params, "beliefs": beliefs, "expected": expected}, problem="", **about)
        if told:
            best = {"params": params, "objective": [1.0, 0.1], "success_probability": 0.9, "feasible": True}
            limits = {"objective": [4.0, 0.5, 3.1, 5.2], "reach": [9.0, 1.0, 7.0, 11.0]}
            self.say(kind="best", best=best, limits=limits, relation="Crashes are high values: 90%.", **about)

    def _expected(self, params: dict[str, Any]) -> dict[str, Any]:
        point = self.study.definition.space.encode(params)
        return {
            "objective": [float(point.sum()), 0.5],
            "constraints": {"reach": [3.0, 0.25]},
            "success_probability": 0.75,
            "trials": 1,
        }

    def ask(self, kind: str, **details: Any) -> "Future[dict[str, Any]]":
        """Answer at once."""
        future: Future[dict[str, Any]] = Future()
        if self.silent:
            future.set_exception(ModelError("The model is broken."))
        elif kind == "predict":
            future.set_result(self._expected(details["params"]))
        else:
            seen = self._reader.read()
            size = 101 if details["y"] is None else 41 * 41
            values = [(i % 41) / 41 + len(seen.rows) for i in range(size)]
            layers = {"mean": values, "std": [0.5] * size, "success": [(i % 41) / 41 for i in range(size)]}
            if details.get("acquisition"):
                layers["acquisition"] = [(i % 41) / 40 for i in range(size)]
            shape = {"columns": 101, "rows": 1} if details["y"] is None else {"columns": 41, "rows": 41}
            future.set_result({"layers": layers, "x": details["x"], "y": details["y"], "basis": seen.basis, **shape})
        return future

    def stop(self) -> None:
        """End."""
        self.stopped = True


class Client:
    """Talks to a console as its page does, unless told otherwise."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port, self.token = (
            str(parts.hostname),
            int(parts.port or 80),
            parts.fragment.removeprefix("token="),
        )
        self.origin = f"{parts.scheme}://{self.host}:{self.port}"
        self.tls = parts.scheme == "https"
        self.cookie = ""

    def login(self) -> "Client":
        """Show the token of the link once, as the page does; a cookie from then on."""
        status, answer, headers = self.post("/api/login", {"token": unquote(self.token)})
        assert status == 200, answer
        self.cookie = headers["set-cookie"].partition(";")[0]
        return self

    def get(self, path: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
        """GET; status, JSON or text, headers."""
        return self.send("GET", path, None, headers)

    def post(self, path: str, body: Any, **headers: str | None) -> tuple[int, Any, dict[str, str]]:
        """POST as the page does; a header of None is left out."""
        usual = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", "X-CrashBO": "1"}
        usual["Content-Type"] = "application/json"
        mine = {name.replace("_", "-"): value for name, value in headers.items()}
        known = {name.lower(): name for name in usual}
        merged: dict[str, str | None] = {**usual, **{known.get(name.lower(), name): one for name, one in mine.items()}}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send("POST", path, data, {name: one for name, one in merged.items() if one is not None})

    def send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any, dict[str, str]]:
        """Send anything."""
        unchecked = ssl._create_unverified_context() if self.tls else None
        connection = (
            http.client.HTTPSConnection(self.host, self.port, timeout=30, context=unchecked)
            if unchecked
            else http.client.HTTPConnection(self.host, self.port, timeout=30)
        )
        sent = {name.replace("_", "-"): one for name, one in headers.items()}
        if self.cookie:
            sent.setdefault("Cookie", self.cookie)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            text = answer.read().decode()
            found = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        return answer.status, json.loads(text) if "json" in found.get("content-type", "") else text, found

    def state(self) -> Any:
        """The whole state."""
        return self.get("/api/state")[1]

    def wait(self, ready: Callable[[Any], bool], seconds: float = 60.0) -> Any:
        """The state once it is as wanted."""
        found: Any = None

        def look() -> bool:
            nonlocal found
            found = self.state()
            return bool(ready(found))

        wait_until(look, seconds, every=0.02)
        return found

    def take(self) -> int:
        """Take the suggestion as soon as there is one."""
        offer = self.wait(lambda state: state["offer"] and state["offer"]["current"])["offer"]
        status, answer, _ = self.post("/api/take", {"offer": offer["key"]})
        assert status == 200, answer
        return int(answer["number"])

"""How fast the console is with a long study: until the page can be used, until there is a suggestion, and until a press
of CRASHED is stored.

    python benchmarks/console.py [TRIALS] [PARAMETERS]

The page is opened in Chromium where there is one. CRASHED is pressed over and over while the model is computing.
"""

import json
import math
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from crashbo.store import recording
from crashbo.store.files import make_definition
from crashbo.store.storage import find_place
from crashbo.store.study import Study, create_study, open_study

PRESSES = 20
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
CODE = "import sys; from crashbo.cli import main; sys.argv[0] = 'crashbo'; main()"


def make(folder: Path, count: int, dimension: int) -> Study:
    """A study of three parameters that matter and others that do not, a third of its trials crashed."""
    parameters: dict[str, Any] = {"kp": [0, 10], "kd": {"low": 1e-3, "high": 1, "log": True}, "ki": [0, 1]}
    parameters |= {f"p{i}": [0, 1] for i in range(3, dimension)}
    study = create_study(find_place(str(folder / "study.db")), make_definition(parameters, constraints=["reach"]))
    for params in study.definition.space.sample(count, np.random.default_rng(0)):
        cost = (params["kp"] - 6) ** 2 / 10 + math.log10(params["kd"]) ** 2 / 2 + params["ki"]
        good = cost < 3
        seen = {"reach": params["kp"]} if good else {}
        recording.add(study, params, cost if good else None, seen, "" if good else "fell")
    return study


def call(url: str, body: Any = None) -> Any:
    """Talk to the console as its page does."""
    headers = {"content-type": "application/json", "x-crashbo": "1"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.load(answer)


def wait_for_offer(url: str) -> None:
    """Until there is a suggestion."""
    while not call(f"{url}api/state?since=999999999")["offer"]:
        time.sleep(0.05)


def press(url: str, study: Study) -> tuple[float, bool]:
    """Seconds until a crash is stored, and whether the model was computing all along."""
    params = {"kp": 1.0, "kd": 0.1} | {name: 0.5 for name in study.definition.space if name not in ("kp", "kd")}
    number = call(f"{url}api/start", {"params": params})["number"]
    busy = call(f"{url}api/state?since=999999999")["model"]["busy"]
    begin = time.perf_counter()
    call(f"{url}api/crash", {"number": number, "reason": "fell", "constraints": {"reach": 1.5}})
    seconds = time.perf_counter() - begin
    assert study.trial(number).state.is_finished()
    return seconds, busy and call(f"{url}api/state?since=999999999")["model"]["busy"]


def open_page(url: str, count: int) -> float | None:
    """Seconds until the page shows the trials and takes input; None without a browser."""
    if CHROMIUM is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        page = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS).new_page()
        page.goto("about:blank")
        begin = time.perf_counter()
        page.goto(url)
        page.get_by_text(f"of {count} trials").wait_for()
        page.locator("#try-own").click()
        page.locator("#own[open]").wait_for()
        return time.perf_counter() - begin


def main(count: int = 500, dimension: int = 3) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        place = make(Path(folder), count, dimension).place
        command = [sys.executable, "-c", CODE, "console", str(place.file), "--port", "0", "--no-token"]
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            url = re.findall(r"http://\S+", process.stdout.readline())[0]
            started = time.perf_counter() - begin
            print(f"{count} trials, {dimension} parameters: the console answers {started:.2f} s after its start")
            wait_for_offer(url)
            print(f"first suggestion: {time.perf_counter() - begin:.2f} s after the start")
            usable = open_page(url, count)
            print("page usable: " + ("no browser" if usable is None else f"{usable:.2f} s"))
            study = open_study(place)
            found = [press(url, study) for _ in range(PRESSES)]
        finally:
            process.kill()
            process.wait()
    times = sorted(1000 * seconds for seconds, _ in found)
    busy = sum(busy for _, busy in found)
    print(
        f"CRASHED stored: median {statistics.median(times):.0f} ms, slowest {times[-1]:.0f} ms of {PRESSES} presses, ",
        end="",
    )
    print(f"{busy} of them while a suggestion was being computed")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))

"""Take the pictures of docs/console.md: a small study, the real console, the real model, the browser of the system.

python docs/make_console_images.py [FOLDER]
"""

import math
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from crashbo.console.server import serving
from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.files import make_definition
from crashbo.store.storage import find_place
from crashbo.store.study import Study, create_study

FOLDER = Path(__file__).parent / "images"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
DESK: Any = {"width": 1280, "height": 1000}
PHONE: Any = {"width": 390, "height": 844}
TRIALS = 14


def make(folder: Path) -> Study:
    """A robot arm that oscillates if too stiff and stalls if damped too much."""
    parameters = {
        "stiffness": {"low": 0, "high": 10, "unit": "N/m"},
        "damping": {"low": 0.01, "high": 10, "log": True, "unit": "Ns/m"},
    }
    limits = {"reach": {"threshold": 6.5, "unit": "mm"}}
    definition = make_definition(parameters, constraints=limits, units={"objective": "m/s"}, seed=3)
    study = create_study(find_place(str(folder / "study.db"), "robot arm"), definition)
    for _ in range(TRIALS):
        asked = ask(study)
        if asked is not None:
            record(study, asked.number, asked.params)
    recording.correct(study, 2, status="crashed", reason="misread the log: the arm fell")
    recording.correct(study, 2, status="finished", objective=1.42, constraints={"reach": 4.1}, reason="it did not fall")
    return study


def record(study: Study, number: int, params: dict[str, Any]) -> None:
    """What came of a trial."""
    stiffness, damping = params["stiffness"], math.log10(params["damping"])
    cost = 0.3 + (stiffness - 6.5) ** 2 / 12 + (damping + 0.2) ** 2
    if stiffness > 7.2 + 0.8 * damping:
        recording.crash(study, number, "the arm oscillated")
    elif damping > 0.75:
        recording.crash(study, number, "the motor stalled", {"reach": round(2 + stiffness / 3, 2)})
    else:
        recording.tell(study, number, round(cost, 4), {"reach": round(3 + stiffness / 2, 2)})


def settle(page: Page) -> None:
    """Wait until suggestion, best guess and map are there."""
    page.locator("#take:enabled").wait_for()
    page.locator("#best .params").wait_for()
    page.locator("#map[data-basis][aria-busy=false]").wait_for()
    page.locator("#limit svg").wait_for()
    page.wait_for_timeout(600)


def shoot(folder: Path, url: str) -> None:
    """Take all pictures."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport=DESK)
        page.set_default_timeout(180_000)
        page.goto(url)
        page.locator("#by").fill("Anna")
        settle(page)
        page.locator("#try-own").click()
        page.locator("#own .facts").wait_for()
        page.screenshot(path=folder / "console-own.png")
        page.keyboard.press("Escape")
        page.locator("#take").click()
        page.locator("details.running[open]").wait_for()
        settle(page)
        page.get_by_role("button", name="Close message").click()
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=folder / "console.png")
        page.get_by_role("button", name="Open trial 2").click()
        page.locator("#trial").screenshot(path=folder / "console-trial.png")
        phone = browser.new_page(viewport=PHONE, is_mobile=True, has_touch=True, device_scale_factor=2)
        phone.set_default_timeout(180_000)
        phone.goto(url)
        settle(phone)
        phone.locator("details.running").scroll_into_view_if_needed()
        phone.locator("button.crashed").scroll_into_view_if_needed()
        phone.evaluate("document.querySelector('details.running').scrollIntoView()")
        phone.screenshot(path=folder / "console-phone.png")
        browser.close()


def main(folder: Path = FOLDER) -> None:
    """Make the study, serve it, take the pictures."""
    if CHROMIUM is None:
        raise SystemExit("There is no browser. apt-get install -y chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, serving(make(Path(place))) as url:
        shoot(folder, url)
    for path in folder.glob("console*.png"):
        with Image.open(path) as found:
            found.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE).save(path, optimize=True)
    print(f"Wrote the pictures to {folder}.")


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:2]))

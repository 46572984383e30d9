"""The report in a real browser, offline. Needs Chromium: `apt-get install chromium`."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crashbo.show.report import write_report
from tests.processes import wait_until
from tests.show.test_report import NASTY, make

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A report with nasty names, open in a browser that has no network."""
    path = write_report(make(NASTY, NASTY), tmp_path_factory.mktemp("report") / "report.html")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(offline=True, viewport={"width": 1100, "height": 7000}, color_scheme="light")
        tab = context.new_page()
        tab.troubles = []
        tab.asked_for = []
        tab.on("console", lambda said: tab.troubles.append(said.text) if said.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: tab.troubles.append(str(error)))
        tab.on("dialog", lambda dialog: tab.troubles.append(f"dialog {dialog.message}"))
        tab.on("request", lambda request: tab.asked_for.append(request.url))
        tab.goto(Path(path).as_uri())
        tab.wait_for_selector(".plot .main-svg", timeout=60_000)
        yield tab
        browser.close()


def until(page: Any, condition: str) -> None:
    """Wait in here: waiting inside the page would take an `eval`, which its policy forbids."""
    wait_until(partial(page.evaluate, condition), every=0.05)


def test_it_draws_without_trouble_and_asks_for_nothing(page: Any) -> None:
    until(page, "[...document.querySelectorAll('.plot')].every((one) => one.querySelector('.main-svg'))")
    assert page.locator(".plot").count() >= 8
    assert page.troubles == []
    assert [url for url in page.asked_for if not url.startswith(("file:", "data:", "blob:"))] == []


def test_no_script_of_a_name_runs(page: Any) -> None:
    assert page.title() == "CrashBO report"
    assert page.locator("td", has_text=NASTY).count() >= 1
    assert page.evaluate("document.scripts.length - document.querySelectorAll('script[type]').length") == 2


def test_the_table_sorts_and_filters(page: Any) -> None:
    cost = page.locator("#trials th", has_text="cost").locator("button")
    cost.click()
    column = "[...document.querySelectorAll('#trials tbody tr')].map((row) => row.cells[2].textContent)"
    assert page.evaluate(column) == ["-0.3", "0.4375", "1.25", ""]
    cost.click()
    assert page.evaluate(column) == ["1.25", "0.4375", "-0.3", ""]  # what is missing stays last
    page.select_option("#outcome", "crashed")
    assert page.locator("#trials tbody tr:visible").count() == 1
    assert page.locator("#matches").text_content() == "1 of 4 trials"
    page.select_option("#outcome", "")
    page.fill("#find", "0.4375")
    assert page.locator("#trials tbody tr:visible").count() == 1
    page.fill("#find", "")
    assert page.locator("#matches").text_content() == "4 of 4 trials"


def test_dark_and_light_change_page_and_pictures(page: Any) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    picture = "document.querySelector('.plot .main-svg').style.background"
    before = page.evaluate(ground), page.evaluate(picture)
    page.click("#theme")
    until(page, f"{picture} !== '{before[1]}'")
    assert page.evaluate(ground) == "rgb(20, 24, 31)"
    assert page.evaluate(picture) == "rgb(20, 24, 31)"
    page.click("#theme")
    until(page, f"{picture} === '{before[1]}'")
    assert page.evaluate(ground) == before[0]
    assert page.troubles == []


def test_it_fits_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    until(page, "document.documentElement.scrollWidth <= 360")  # pictures follow in a moment
    page.set_viewport_size({"width": 1100, "height": 7000})

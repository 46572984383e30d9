"""The page in a real browser. Needs Chromium: `apt-get install chromium` (no browser is ever downloaded)."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from crashbo.console.server import Address, serving
from crashbo.problem.parameters import Float
from crashbo.store import recording
from crashbo.store.editing import Edit, edit
from crashbo.store.study import Study
from tests.console.helpers import Client, QuickModel, make_study, reopen
from tests.processes import wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no browser: apt-get install -y chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE = 60_000  # milliseconds
NASTY = "<img src=x onerror=\"document.title='hacked'\"><script>alert(1)</script>"
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests."""
    playwright.expect.set_options(timeout=PATIENCE)
    with playwright.sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens pages of their own, each like a person's browser; at the end none has had trouble."""
    contexts, pages = [], []

    def open_one(url: str, **settings: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("dialog", lambda dialog: page.troubles.append(f"dialog {dialog.message}"))
        page.on("console", lambda said: page.troubles.append(said.text) if _trouble(said) else None)
        page.on("request", lambda asked: None if _own(asked.url, url) else page.troubles.append(asked.url))
        contexts.append(context)
        pages.append(page)
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert [page.troubles for page in pages] == [[] for _ in pages]


def _trouble(said: Any) -> bool:
    """A refused request is no trouble: the page says so beside the field."""
    return said.type in ("error", "warning") and "Failed to load resource" not in said.text


def _own(asked: str, url: str) -> bool:
    return asked.startswith(url.partition("#")[0])


def expect(found: Any) -> Any:
    return playwright.expect(found)


@contextmanager
def console(study: Study, port: int = 0, **model: Any) -> Iterator[tuple[str, QuickModel]]:
    quick = QuickModel(study, **model)
    with serving(study, Address(port=port), model=quick) as url:
        yield url, quick


def take(page: Any) -> int:
    """Take the suggestion; the number of the trial."""
    with page.expect_response("**/api/take") as answer:
        page.locator("#take:enabled").click()
    number = int(answer.value.json()["number"])
    card(page, number).locator("input").first.wait_for()
    return number


def card(page: Any, number: int) -> Any:
    return page.locator(f"details.running[data-number='{number}']")


def once_held(page: Any, held: list[Any]) -> Any:
    """What a route has held back, once it has come; asking the page lets Playwright work meanwhile."""
    wait_until(lambda: page.title() and held, every=0.05)
    return held[0]


def line(page: Any, number: int) -> Any:
    return page.locator(f"#trials tr[data-number='{number}']")


# --- with the real model and the real command ------------------------------------------------------


@contextmanager
def command(study: Study, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`crashbo console STUDY` as a person starts it."""
    place = ["--port", str(port), "--token", "a-token-of-some-length"]  # pages stay open over a restart
    words = [sys.executable, "-m", "crashbo.cli", "console", str(study.place.file), *place]
    code = "import sys; from crashbo.cli import main; sys.argv = sys.argv[1:]; main()"
    process = subprocess.Popen([sys.executable, "-c", code, *words[2:]], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    try:
        yield found[0], process
    finally:
        process.kill()
        process.wait(20)
        process.stdout.close()


def test_an_experiment_from_suggestion_to_crash_over_a_restart(tmp_path: Path, open_page: Open) -> None:
    study = make_study(tmp_path, options={"raw": 64, "samples": 4, "initial": 1})
    with command(study) as (url, process):
        page = open_page(url)
        first = take(page)
        expect(card(page, first).locator("input").first).to_be_focused()
        page.keyboard.type("0.73")
        card(page, first).get_by_label("reach", exact=True).fill("11.2")
        page.keyboard.press("Enter")
        expect(line(page, first)).to_contain_text("0.73")
        page.wait_for_selector("#map[data-basis]")
        before = page.locator("#map").get_attribute("data-basis")
        pixels = page.evaluate("document.querySelector('canvas.heat').toDataURL()")
        expect(page.locator("#offer .facts")).to_contain_text("success probability")
        second = take(page)
        card(page, second).get_by_label("reach", exact=True).fill("3.5")
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        card(page, second).get_by_label("what happened").fill("fell <over>")
        card(page, second).get_by_role("button", name="CRASHED").click()
        expect(card(page, second)).to_contain_text("it may have been stored, or not")
    assert reopen(study).records()[second].status == "pending"
    with command(study, urlsplit(url).port or 0):
        expect(page.locator("#live-text")).to_have_text("live")
        card(page, second).get_by_role("button", name="CRASHED").click()  # what was typed is still there
        expect(line(page, second)).to_contain_text("fell <over>")
        expect(line(page, second)).to_contain_text("3.5")
        expect(page.locator("#counts")).to_contain_text("1 finished · 1 crashed · 0 under way")
        expect(page.locator("#map")).not_to_have_attribute("data-basis", str(before))
        expect(page.locator("#map .mark.crash")).to_have_count(1)
        # The marks come with the trials; the colours follow when the model has learned from them.
        page.wait_for_function("before => document.querySelector('canvas.heat').toDataURL() != before", arg=pixels)
        expect(page.locator("#convergence .mark.crash")).to_have_count(1)
    found = reopen(study).records()
    assert [(one.status, one.objective, one.reason) for one in found] == [
        ("finished", 0.73, ""),
        ("crashed", None, "fell <over>"),
    ]
    assert found[1].constraints == {"reach": 3.5}


# --- with a quick stand-in for the model -----------------------------------------------------------


def test_wrong_input_is_refused_beside_the_field(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        page = open_page(url)
        number = take(page)
        cost = card(page, number).get_by_label("cost", exact=True)
        cost.fill("0,73")
        card(page, number).get_by_role("button", name="Store result").click()
        expect(cost).to_have_attribute("aria-invalid", "true")
        expect(cost).to_be_focused()
        about = str(cost.get_attribute("aria-describedby"))
        expect(page.locator(f"#{about}")).to_contain_text("Write a point, not a comma")
        reach = card(page, number).locator(".field", has_text="reach")
        expect(reach.locator(".error")).to_contain_text("Enter a value, or say that it broke its limit")
        assert reopen(study).records()[number].status == "pending"
        cost.fill("0.73")
        card(page, number).get_by_label("broke its limit").check()
        card(page, number).get_by_role("button", name="Store result").click()
        expect(line(page, number)).to_contain_text("violated")


def test_correct_delete_and_bring_back(study: Study, open_page: Open) -> None:
    recording.add(study, {"kp": 2.0, "kd": 0.5}, None, {}, "fell")
    with console(study) as (url, _):
        page = open_page(url)
        page.get_by_role("button", name="Open trial 0").click()
        dialog = page.locator("#trial")
        dialog.get_by_label("it has a cost").check()
        dialog.get_by_role("button", name="Store correction").click()
        expect(dialog.locator(".field", has_text="cost").locator(".error")).to_contain_text("Enter the cost")
        dialog.get_by_label("cost", exact=True).fill("1.5")
        dialog.get_by_label("reach", exact=True).fill("2")
        dialog.get_by_role("button", name="Store correction").click()
        expect(line(page, 0)).to_contain_text("finished corrected")
        page.get_by_role("button", name="Open trial 0").click()
        expect(dialog.locator(".history li")).to_have_count(2)
        expect(dialog.locator(".history li").first).to_contain_text("crashed, fell")
        dialog.get_by_role("button", name="Delete trial").click()
        expect(line(page, 0)).to_contain_text("deleted")
        page.get_by_role("button", name="Open trial 0").click()
        dialog.get_by_role("button", name="Bring it back").click()
        expect(line(page, 0)).to_contain_text("finished corrected")
    assert reopen(study).records()[0].objective == 1.5


def test_an_open_page_follows_an_edit(study: Study, open_page: Open) -> None:
    recording.add(study, {"kp": 2.0, "kd": 0.5}, 1.0, {"reach": 1.0})
    with console(study) as (url, _):
        page = open_page(url)
        page.wait_for_selector("#map[data-basis]")
        before = page.locator("#map").get_attribute("data-basis")
        wanted = Edit(parameters={"kp": Float(0.0, 20.0), "kx": Float(0.0, 1.0)}, values={"kx": 0.25})
        edit(reopen(study), wanted)
        expect(page.locator("#trials thead")).to_contain_text("kx")
        expect(line(page, 0)).to_contain_text("0.25")
        expect(page.locator("#map-x option")).to_have_text(["kp [N/m]", "kd", "kx"])
        expect(page.locator("#map")).not_to_have_attribute("data-basis", str(before))
        page.get_by_role("button", name="Try my own values").click()
        dialog = page.locator("#own")
        dialog.get_by_label("kp [N/m]").fill("19")
        dialog.get_by_role("button", name="Start this experiment").click()
        expect(page.locator("details.running")).to_have_count(1)
    assert reopen(study).records()[1].params["kp"] == 19.0


def test_two_browsers_see_the_same_and_one_gets_the_suggestion(study: Study, open_page: Open) -> None:
    with console(study) as (url, model):
        anna, ben = open_page(url), open_page(url)
        anna.get_by_label("You").fill("Anna")
        expect(ben.locator("#take:enabled")).to_be_visible()
        model.fall_silent()  # nothing new to take for now
        late = ben.locator("#take")
        ben.evaluate("window.pressed = document.querySelector('#take')")
        number = take(anna)
        ben.evaluate("window.pressed.click()")  # a press that came too late
        expect(ben.locator("#said")).to_contain_text("taken")
        expect(late).to_have_count(0)
        expect(card(ben, number)).to_contain_text("by Anna")
        card(ben, number).get_by_label("cost", exact=True).fill("half-typ")
        anna.get_by_role("button", name="Try my own values").click()
        anna.locator("#own").get_by_role("button", name="Start this experiment").click()
        expect(ben.locator("details.running")).to_have_count(2)
        expect(card(ben, number).get_by_label("cost", exact=True)).to_have_value(
            "half-typ"
        )  # nobody loses their typing
        card(anna, number).get_by_role("button", name="CRASHED").click()
        expect(line(ben, number)).to_contain_text("crashed")
        expect(card(ben, number)).to_have_count(0)
    assert [one.status for one in reopen(study).records()] == ["crashed", "pending"]


def test_own_values_that_break_a_constraint_between_parameters(tmp_path: Path, open_page: Open) -> None:
    study = make_study(tmp_path, parameter_constraints=["kp * kd <= 4"])
    with console(study) as (url, _):
        page = open_page(url)
        page.get_by_role("button", name="Try my own values").click()
        dialog = page.locator("#own")
        dialog.get_by_label("kp [N/m]").fill("9")
        dialog.get_by_label("kd", exact=True).fill("0.5")
        expect(dialog.locator(".prediction")).to_contain_text("they break “kp * kd <= 4”")
        dialog.get_by_role("button", name="Start this experiment").click()
        expect(dialog.locator("[role=alert]").last).to_contain_text("they break “kp * kd <= 4”")
        assert reopen(study).records() == []


def test_own_values_show_a_prediction_before_they_start(study: Study, open_page: Open) -> None:
    recording.add(study, {"kp": 2.0, "kd": 0.5}, 1.0, {"reach": 1.0})
    with console(study) as (url, _):
        page = open_page(url)
        expect(page.locator("#take")).to_be_visible()
        page.get_by_role("button", name="Try my own values").click()
        dialog = page.locator("#own")
        dialog.get_by_label("kp [N/m]").fill("5")
        dialog.get_by_label("kd", exact=True).fill("0.5")
        expect(dialog.locator(".prediction")).to_contain_text("1 ± 0.5")
        expect(dialog.locator(".prediction")).to_contain_text("75 %")
        dialog.get_by_label("kp [N/m]").fill("50")
        expect(dialog.locator(".prediction")).to_contain_text("No prediction")
        dialog.get_by_role("button", name="Start this experiment").click()
        expect(dialog.locator(".error").first).to_contain_text("from 0 to 10; got 50")
        assert len(reopen(study).records()) == 1
        dialog.get_by_label("kp [N/m]").fill("5")
        page.keyboard.press("Enter")
        expect(card(page, 1)).to_be_visible()
    assert dict(reopen(study).records()[1].params) == {"kp": 5.0, "kd": 0.5}


def test_a_double_click_starts_one_trial(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        page = open_page(url)
        expect(page.locator("#take")).to_be_visible()
        page.get_by_role("button", name="Try my own values").click()
        page.locator("#own").get_by_role("button", name="Start this experiment").dblclick()
        expect(card(page, 0)).to_be_visible()
        expect(page.locator("#counts")).to_contain_text("1 under way")
        card(page, 0).get_by_role("button", name="CRASHED").dblclick()
        expect(page.locator("#counts")).to_contain_text("1 crashed · 0 under way")
    assert len(reopen(study).records()) == 1


def test_a_press_after_a_lost_answer_stores_once(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        page = open_page(url)
        number = take(page)
        page.route("**/api/state?*", lambda route: route.abort())  # the news must not be faster than the lost answer
        page.route("**/api/crash", lambda route: (route.fetch(), route.abort()))  # stored, and the answer is lost
        card(page, number).get_by_role("button", name="CRASHED").click()
        expect(card(page, number)).to_contain_text("it may have been stored, or not")
        assert "nothing was stored" not in page.content()
        page.unroute("**/api/crash")
        page.unroute("**/api/state?*")
        page.get_by_role("button", name="Try my own values").click()
        page.route("**/api/start", lambda route: (route.fetch(), route.abort()))
        page.locator("#own").get_by_role("button", name="Start this experiment").click()
        expect(page.locator("#own [role=alert]").last).to_contain_text("it may have been stored, or not")
        page.unroute("**/api/start")
        page.locator("#own").get_by_role("button", name="Start this experiment").click()
        expect(page.locator("#counts")).to_contain_text("1 crashed · 1 under way")
    assert len(reopen(study).records()) == 2


def test_ten_tabs_of_one_browser_share_one_stream(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        first = open_page(url)
        expect(first.locator("#take")).to_be_visible()
        tabs = [first]
        for _ in range(9):  # browsers allow six connections to one address
            tabs.append(first.context.new_page())
            tabs[-1].goto(url.partition("#")[0])
            expect(tabs[-1].locator("#take")).to_be_visible()
        recording.add(reopen(study), {"kp": 2.0, "kd": 0.5}, 1.25, {"reach": 1.0})
        for tab in tabs:
            expect(line(tab, 0)).to_contain_text("1.25")
        first.close()  # it was the one that listened; another takes over
        recording.add(reopen(study), {"kp": 3.0, "kd": 0.5}, 2.5, {"reach": 1.0})
        for tab in tabs[1:]:
            expect(line(tab, 1)).to_contain_text("2.5")


def test_a_late_answer_takes_no_focus_from_someone_typing(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        page, held = open_page(url), []
        page.route("**/api/take", lambda route: held.append((route, route.fetch())))
        page.locator("#take:enabled").click()
        reason = card(page, 0).get_by_label("what happened")  # the news are faster than the answer
        reason.focus()
        page.keyboard.type("no ")
        route, answer = once_held(page, held)
        with page.expect_response("**/api/state*"):
            route.fulfill(response=answer)
        expect(page.locator("#said")).to_contain_text("Trial 0 is yours")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")  # it is drawn
        page.keyboard.type("power")
        expect(reason).to_have_value("no power")
        expect(reason).to_be_focused()


def test_skip_does_not_count_and_filter(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        page = open_page(url)
        page.locator("#skip:enabled").click()
        expect(line(page, 0)).to_contain_text("skipped")
        number = take(page)
        card(page, number).get_by_label("what happened").fill("no power")
        card(page, number).get_by_role("button", name="Does not count").click()
        expect(line(page, number)).to_contain_text("transient")
        page.get_by_label("Find").fill("POWER")
        expect(page.locator("#trials tbody tr")).to_have_count(1)
        expect(page.locator("#shown")).to_have_text("1 of 2 trials")
        page.get_by_label("Find").fill("")
        page.locator("#filter-status").select_option("crashed")
        expect(page.locator("#trials tbody tr")).to_have_count(0)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download CSV").click()
        text = Path(download.value.path()).read_text()
        assert text.splitlines()[0] == "number,status,kp,kd,objective,reach,reason"


def test_the_crashed_button_works_while_the_model_is_broken(study: Study, open_page: Open) -> None:
    with console(study) as (url, model):
        page = open_page(url)
        number = take(page)
        model.break_down("The model failed (MemoryError).")
        expect(page.locator("#offer")).to_contain_text("You can still record results")
        card(page, number).get_by_role("button", name="CRASHED").click()
        expect(line(page, number)).to_contain_text("crashed")
        page.get_by_role("button", name="Add a reason").click()
        page.locator("#trial").get_by_label("Reason").fill("fell")
        page.locator("#trial").get_by_role("button", name="Store correction").click()
        expect(line(page, number)).to_contain_text("fell")
        page.get_by_role("button", name="Try my own values").click()
        expect(page.locator("#own .prediction")).to_contain_text("You can start it anyway")


def test_names_and_reasons_are_only_text(tmp_path: Path, open_page: Open) -> None:
    study = make_study(tmp_path, parameters={NASTY: [0, 1], "__proto__": [0, 1], "c": [NASTY, "b"]}, constraints=[])
    recording.add(study, {NASTY: 0.5, "__proto__": 0.5, "c": NASTY}, None, {}, NASTY)
    recording.add(study, {NASTY: 0.2, "__proto__": 0.5, "c": "b"}, 1.0)
    with console(study) as (url, _):
        page = open_page(url)
        page.get_by_label("You").fill(NASTY[:60])
        page.wait_for_selector("#map[data-basis]")
        number = take(page)
        page.get_by_role("button", name="Open trial 0").click()
        expect(page.locator("#trial")).to_contain_text(NASTY)
        page.keyboard.press("Escape")
        card(page, number).get_by_label("what happened").fill(NASTY)
        card(page, number).get_by_role("button", name="CRASHED").click()
        expect(line(page, number).locator(".reason")).to_have_text(NASTY)
        assert page.locator("img").count() == 1
        assert page.locator("script").count() == 1
        assert page.title() == "arm · CrashBO"


def test_the_token_in_the_link_opens_and_leaves_the_address(study: Study, open_page: Open) -> None:
    with serving(study, Address(port=0, token="a-token-of-some-length"), model=QuickModel(study)) as url:
        page = open_page(url)
        expect(page.locator("#take")).to_be_visible()
        assert page.url == url.partition("#")[0]
        assert "a-token" not in page.evaluate("document.cookie")
        page.reload()
        expect(page.locator("#take")).to_be_visible()
        stranger = open_page(url.partition("#")[0])
        stranger.locator("#token").fill("a-wrong-token-of-some-length")
        stranger.get_by_role("button", name="Open").click()
        expect(stranger.locator("#token-error")).to_contain_text("The token is wrong")
        stranger.locator("#token").fill("a-token-of-some-length")
        stranger.get_by_role("button", name="Open").click()
        expect(stranger.locator("#take")).to_be_visible()


def test_everything_by_keyboard(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        page = open_page(url)
        expect(page.locator("#take:enabled")).to_be_visible()
        _tab_to(page, "take")
        page.keyboard.press("Enter")
        expect(card(page, 0).locator("input").first).to_be_focused()
        page.keyboard.type("1.5")
        page.keyboard.press("Tab")
        page.keyboard.type("2")
        page.keyboard.press("Enter")
        expect(line(page, 0)).to_contain_text("1.5")
        expect(page.locator("#take:enabled")).to_be_visible()
        _tab_to(page, "take")
        page.keyboard.press("Space")
        expect(card(page, 1).locator("input").first).to_be_focused()
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent") == "CRASHED":
                break
        page.keyboard.press("Enter")
        expect(line(page, 1)).to_contain_text("crashed")
        expect(page.locator("#next-title")).to_be_focused()
        page.get_by_role("button", name="Open trial 1").press("Enter")
        assert page.evaluate("document.querySelector('#trial').contains(document.activeElement)")
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Open trial 1")).to_be_focused()


def _tab_to(page: Any, identifier: str) -> None:
    page.locator("body").press("Tab")
    for _ in range(30):
        if page.evaluate("document.activeElement.id") == identifier:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{identifier} cannot be reached by Tab")


def test_on_a_phone_nothing_sticks_out_and_targets_are_large(study: Study, open_page: Open) -> None:
    recording.add(study, {"kp": 2.0, "kd": 0.5}, 1.0, {"reach": 1.0})
    with console(study) as (url, _):
        page = open_page(url, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
        number = take(page)
        page.wait_for_selector("#map[data-basis]")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        small = page.evaluate(
            """[...document.querySelectorAll('button, select, input:not([type=checkbox]):not([type=radio]), a.button')]
            .filter((one) => one.offsetParent && !one.matches('p .link'))
            .map((one) => [one.textContent || one.id, one.getBoundingClientRect().height])
            .filter((one) => one[1] < 43)"""
        )
        assert small == []
        crashed = card(page, number).get_by_role("button", name="CRASHED")
        box = crashed.bounding_box()
        assert box is not None
        assert box["height"] >= 80
        assert box["width"] >= 280
        crashed.tap()
        expect(line(page, number)).to_contain_text("crashed")


def test_a_screen_reader_has_names_for_everything(study: Study, open_page: Open) -> None:
    recording.add(study, {"kp": 2.0, "kd": 0.5}, 1.0, {"reach": 1.0})
    with console(study) as (url, _):
        page = open_page(url)
        take(page)
        page.wait_for_selector("#map[data-basis]")
        page.get_by_role("button", name="Try my own values").click()
        nameless = page.evaluate(
            "[...document.querySelectorAll('input, select')].filter((one) => !one.labels.length).map((one) => one.id)"
        )
        assert nameless == []
        for role in ("main", "banner"):
            assert page.get_by_role(role).count() == 1
        page.keyboard.press("Escape")
        headings = page.get_by_role("heading").all_inner_texts()
        assert {"arm", "Next experiment", "Under way", "Best guess", "Trials", "The limit"} <= set(headings)
        expect(page.get_by_role("img", name="Map of Expected cost over kp and kd")).to_be_visible()
        assert page.locator("#said[role=status][aria-live=polite]").count() == 1
        assert page.locator("#banner[role=alert]").count() == 1


def test_axes_layers_and_slices_of_the_map(tmp_path: Path, open_page: Open) -> None:
    parameters = {"kp": [0, 10], "kd": {"low": 0.01, "high": 1, "log": True}, "n": {"low": 1, "high": 9, "type": "int"}}
    study = make_study(tmp_path, parameters={**parameters, "filter": ["none", "butter"]}, constraints=["reach"])
    recording.add(study, {"kp": 2.0, "kd": 0.1, "n": 3, "filter": "none"}, 1.0, {"reach": 1.0})
    with console(study) as (url, _):
        page = open_page(url)
        picture = page.get_by_role("img", name=re.compile("Map of"))
        expect(picture).to_have_attribute("aria-label", "Map of Expected cost over kp and kd")
        page.get_by_label("Across").select_option("kd")
        expect(picture).to_have_attribute("aria-label", "Map of Expected cost over kd and kp")
        page.get_by_label("Up").select_option("filter")
        page.locator("#map-layer").select_option("success")
        expect(picture).to_have_attribute("aria-label", "Map of Success probability over kd and filter")
        page.locator("#map-layer").select_option("acquisition")
        expect(picture).to_have_attribute("aria-label", "Map of Where to try next over kd and filter")
        expect(page.locator("#map figcaption")).to_contain_text("1 is the most promising point")
        page.locator("#map-layer").select_option("success")
        page.get_by_text("Values of the other parameters").click()
        page.get_by_label(re.compile(r"^n = ")).fill("950")
        expect(page.locator("#map figcaption")).to_contain_text("n = 9")
        page.get_by_label("Up").select_option("")
        expect(page.get_by_role("img", name="Success probability along kd")).to_be_visible()
        page.get_by_label("Up").select_option("kp")
        picture.click(position={"x": 300, "y": 100})
        expect(page.locator("#own")).to_contain_text("Try my own values")
        assert page.locator("#own-2").input_value() == "9"  # the slice comes along


def test_an_answer_that_comes_after_the_news_does_no_harm(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        page, held = open_page(url), []
        number = take(page)
        page.route("**/api/crash", lambda route: held.append((route, route.fetch())))
        card(page, number).get_by_role("button", name="CRASHED").click()
        expect(card(page, number)).to_have_count(0)  # the page has heard of the crash
        route, answer = once_held(page, held)
        route.fulfill(response=answer)
        expect(page.locator("#said")).to_contain_text("stored as crashed")
        expect(card(page, number)).to_have_count(0)


def test_workers_of_other_processes_are_watched(study: Study, open_page: Open) -> None:
    with console(study) as (url, _):
        page = open_page(url)
        expect(page.locator("#take:enabled")).to_be_visible()
        for count in range(1, 4):
            recording.add(reopen(study), {"kp": float(count), "kd": 0.5}, float(count), {"reach": 1.0})
            expect(page.locator("#convergence")).to_have_attribute("data-trials", str(count))
        expect(page.locator("#convergence .mark.dot")).to_have_count(3)
        expect(page.locator("#convergence figcaption")).to_contain_text("Best so far: cost 1 in trial 0")
        assert Client(url).login().state()["counts"]["finished"] == 3

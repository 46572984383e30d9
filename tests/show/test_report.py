"""The report says what the optimizer knows, opens without a network, and runs nobody else's script."""

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from crashbo import CRASHED, VIOLATED, Constraint, FixedModel, InputError, Optimizer, Options
from crashbo.model.words import describe_limit
from crashbo.show import view
from crashbo.show.report import Extra, render_report, write_report
from crashbo.show.report.summary import best_trial, count, limits, sentences

NASTY = "</script><script>alert('x')</script>"
FIXED = FixedModel(lengthscale=0.3, variance=1.0, noise_std=0.02)
WHEN = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def make(name: str = "kp", reason: str = "fell") -> Optimizer:
    """A few trials of every outcome."""
    optimizer = Optimizer(
        {name: (0.0, 10.0), "kd": (0.1, 1.0)},
        constraints=[Constraint("reach")],
        seed=5,
        options=Options(initial=1, fixed={"objective": FIXED, "reach": FIXED}),
    )
    optimizer.tell({name: 1.0, "kd": 0.2}, 1.25, reach=0.3)
    optimizer.tell({name: 3.0, "kd": 0.5}, 0.4375, reach=0.6)
    optimizer.tell({name: 5.0, "kd": 0.4}, -0.3, reach=VIOLATED)
    optimizer.tell({name: 8.0, "kd": 0.9}, CRASHED, reason=reason)
    return optimizer


class Page(HTMLParser):
    """The parts of a page that matter here."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict, str]] = []
        self.tags: list[tuple[str, dict]] = []
        self.words: list[str] = []
        self.cells: list[list[str]] = []
        self._inside, self._cell = "", False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "tr":
            self.cells.append([])
        if tag == "td":
            self.cells[-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag != "td"
        self._inside = "" if tag in ("script", "style", "td") else self._inside

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._inside != "style":
            self.words.append(data)
            if self._cell:
                self.cells[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def figures(self) -> list[dict]:
        return [json.loads(body) for attrs, body in self.scripts if attrs.get("id", "").startswith("figure-")]


@pytest.fixture(scope="module")
def optimizer() -> Optimizer:
    return make()


@pytest.fixture(scope="module")
def html(optimizer: Optimizer) -> str:
    return render_report(view(optimizer, units={"kp": "N/m", "objective": "J"}, numbers=[4, 7, 8, 11]), when=WHEN)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_it_says_what_happened(page: Page, optimizer: Optimizer) -> None:
    best = optimizer.best()
    assert "4 trials: 2 succeeded, 1 crashed and 1 violated a limit." in page.text
    assert "Reasons of the crashes: fell (1)." in page.text
    assert "The best trial was number 7, with a cost of 0.4375 J." in page.text
    assert f"Expected cost {best.mean:.5g} ± {best.std:.2g} J, success {best.success_probability:.1%}." in page.text
    assert f"{best.params['kp']:.6g} N/m" in page.text
    reach = optimizer.limits["reach"]
    assert f"reach seems to be violated above {describe_limit(reach)}." in page.text
    assert optimizer.crash_relation in page.text
    assert "2026-11-15 12:00 UTC" in page.text


def test_every_trial_is_in_the_table_with_its_own_number(page: Page) -> None:
    rows = [row for row in page.cells if row and row[0] in ("4", "7", "8", "11")]
    assert [row[:4] for row in rows] == [
        ["4", "succeeded", "1.25", "0.3"],
        ["7", "succeeded", "0.4375", "0.6"],
        ["8", "violated", "-0.3", "violated"],
        ["11", "crashed", "", ""],
    ]
    assert rows[3][-1] == "fell"
    assert rows[3][4:6] == ["8", "0.9"]


def test_it_can_be_repeated_from_what_it_holds(page: Page, optimizer: Optimizer, html: str) -> None:
    state = re.search(r"<pre>(.*?)</pre>", html, re.S)
    assert state is not None
    import html as escaping

    restored = Optimizer.from_json(json.loads(escaping.unescape(state.group(1))))
    assert restored.to_json() == optimizer.to_json()
    assert ["seed", "5"] in page.cells
    assert any(row[0] == "version of crashbo" for row in page.cells if row)


def test_its_pictures_are_figures_of_the_model(page: Page) -> None:
    titles = [figure["layout"].get("title", {}).get("text", "") for figure in page.figures]
    assert {"cost, mean", "cost, standard deviation", "success probability", "reach, mean"} <= set(titles)
    names = {trace.get("name") for figure in page.figures for trace in figure["data"]}
    assert {
        "best so far",
        "learned limit",
        "± its standard deviation",
        "for success",
        "best guess",
        "next point",
    } <= names


def test_it_holds_a_drawing_library_that_knows_its_traces_and_no_more(html: str, page: Page) -> None:
    used = {trace["type"] for figure in page.figures for trace in figure["data"]}
    assert used <= {"scatter", "bar", "heatmap", "contour"}  # all in plotly.js's cartesian bundle
    assert "plotly.js (cartesian - minified)" in html
    assert len(html) < 2_500_000


def test_it_asks_for_nothing_from_outside(html: str, page: Page) -> None:
    for tag, attrs in page.tags:
        assert "src" not in attrs, tag
        assert not attrs.get("href", "#").startswith(("http", "//")), tag
    assert "@import" not in html
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_its_policy_allows_exactly_its_own_scripts(page: Page) -> None:
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    runs = [body for attrs, body in page.scripts if attrs.get("type") != "application/json"]
    hashes = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in runs]
    assert len(runs) == 2
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert "unsafe-eval" not in policy


def test_names_and_reasons_are_text_and_never_tags() -> None:
    text = render_report(view(make(NASTY, NASTY), units={NASTY: NASTY}), title=NASTY)
    parsed = Page(text)
    assert len([attrs for attrs, _ in parsed.scripts if attrs.get("type") != "application/json"]) == 2
    assert NASTY in parsed.text
    assert "<script>alert" not in text
    assert all(json.dumps(figure) for figure in parsed.figures)  # each survived whole
    handlers = [name for _, attrs in parsed.tags for name in attrs if name.startswith("on")]
    assert handlers == []


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_words_know_the_direction(direction: str) -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)}, direction=direction, options=Options(crashes="absorb"))
    for x, cost in ((0.1, 0.5), (0.4, 1.5)):
        optimizer.tell({"x": x}, cost)
    optimizer.tell({"x": 0.9}, CRASHED)
    found = best_trial(view(optimizer))
    assert found is not None
    assert found.objective == (0.5 if direction == "minimize" else 1.5)
    (line,) = limits(view(optimizer))
    assert line.worst == (1.5 if direction == "minimize" else 0.5)
    side = "above" if direction == "minimize" else "below"
    assert any(f"crash {side} a cost of {line.words}." in one for one in sentences(view(optimizer), None))


def test_a_given_limit_is_not_called_learned() -> None:
    options = Options(fixed={"objective": FIXED, "g": FIXED})
    optimizer = Optimizer({"x": (0.0, 1.0)}, constraints=[Constraint("g", threshold=1.0)], options=options)
    optimizer.tell({"x": 0.2}, 1.0, g=0.5)
    optimizer.tell({"x": 0.6}, 0.2, g=1.5)
    (line,) = limits(view(optimizer))
    assert (line.known, line.limit.value, line.limit.deviation, line.worst) == (True, 1.0, 0.0, 0.5)
    assert count(view(optimizer)).violated == 1
    assert "1 (given)" in Page(render_report(optimizer)).text


def test_before_the_first_trial_it_still_holds_the_settings() -> None:
    text = Page(render_report(Optimizer({"x": (0.0, 1.0)}, seed=9))).text
    assert "No trial has been told yet" in text
    assert "seed 9" in text


def test_only_crashes_and_only_constants_are_reported_too() -> None:
    crashes = Optimizer({"x": (0.0, 1.0)})
    crashes.tell({"x": 0.3}, CRASHED)
    crashes.tell({"x": 0.7}, CRASHED)
    assert "Nothing reaches the 95% a best guess needs; this comes closest." in Page(render_report(crashes)).text
    constant = Optimizer({"x": (2.0, 2.0)})
    constant.tell({"x": 2.0}, 1.0)
    assert "1 trial, none failed." in Page(render_report(constant)).text


def test_the_file_is_written_whole_into_a_new_folder(tmp_path: Path) -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)})
    target = tmp_path / "new" / "report.html"
    assert write_report(optimizer, target) == target
    assert target.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==")  # a GIF


def test_pictures_of_ones_own_become_part_of_the_page(tmp_path: Path) -> None:
    picture = tmp_path / "pole.gif"
    picture.write_bytes(PIXEL)
    drawing = tmp_path / "sketch.svg"
    drawing.write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    extras = [Extra("The pole", "Eight times <larger>.", picture), Extra(NASTY, NASTY, drawing)]
    path = write_report(make(), tmp_path / "report.html", extras=extras)
    picture.unlink()
    text = path.read_text()
    page = Page(text)
    images = [attrs for tag, attrs in page.tags if tag == "img"]
    assert [one["alt"] for one in images] == ["The pole", NASTY]
    kind, content = images[0]["src"].split(",", 1)
    assert kind == "data:image/gif;base64"
    assert base64.b64decode(content) == PIXEL
    assert images[1]["src"].startswith("data:image/svg+xml;base64,")
    assert "Eight times <larger>." in "".join(page.words)
    assert NASTY not in text  # neither in words nor in the drawing, which a browser shows without its scripts
    assert "img-src data:" in text


@pytest.mark.parametrize("name", ["notes.txt", "page.html", "picture"])
def test_a_file_that_is_no_picture_is_refused_and_nothing_written(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("words")
    with pytest.raises(InputError, match="`picture` must be an image file; got " + name):
        write_report(make(), tmp_path / "report.html", extras=[Extra("Mine", "", tmp_path / name)])
    assert not (tmp_path / "report.html").exists()

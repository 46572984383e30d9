"""The page on plots runs as it is printed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "plots.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(compile(block, PAGE.name, "exec"), names)
    assert (tmp_path / "report.html").stat().st_size > 1_000_000  # the drawing library is inside


def test_the_page_names_every_picture_there_is() -> None:
    from crashbo import plots
    from crashbo.show import interactive

    text = PAGE.read_text()
    drawn = {name for name in plots.__all__ if name.startswith("plot_")} - {"plot_posterior", "plot_predictive"}
    assert all(f"`{name}`" in text for name in drawn)
    assert {name for name in interactive.__all__ if name.startswith("plot_")} == drawn - {"plot_pairs"}

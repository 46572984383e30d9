"""The page for users of Optuna runs as it is printed."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "optuna.md"


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")  # heartbeats are experimental
def test_the_page_runs_in_order() -> None:
    blocks = re.findall(r"^ *```python\n(.*?)^ *```", PAGE.read_text(), re.S | re.M)
    assert len(blocks) == 10
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(textwrap.dedent(block), str(PAGE), "exec"), names)
    assert "reach" in names["study"].sampler.optimizer(names["study"]).thresholds
    assert {trial.params["model"] for trial in names["branching"].trials} == {"tree", "machine"}

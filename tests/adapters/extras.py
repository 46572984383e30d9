"""Tests of integrations whose packages are extras: skipped, with the reason, where those are missing."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


def needs(module: str, extra: str) -> Any:
    """Import a module of an extra, its own warnings aside; skip the test file without it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(module, reason=f"needs pip install 'crashbo[{extra}]' (make integrations)")


def run_page(page: str, names: dict[str, object]) -> None:
    """Run the Python blocks of a page in order."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)

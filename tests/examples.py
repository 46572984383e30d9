"""Examples as tests run them: with few trials, in a folder that has their files."""

import re
import shutil
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"
_BUDGETS = [
    (r"(n_trials(?:: int)? ?= ?)\d+", 8),
    (r"(--trials\W+)\d+", 6),
    (r"(num_samples=)\d+", 6),
    (r"(seed in range\()\d+", 1),
]


def small_copy(name: str, folder: Path) -> Path:
    """Copy an example with a smaller budget, and the files it needs, into a folder."""
    for needed in (path for path in EXAMPLES.iterdir() if path.is_dir() and path.name != "__pycache__"):
        shutil.copytree(needed, folder / needed.name)
    text = (EXAMPLES / name).read_text()
    for pattern, most in _BUDGETS:
        text = re.sub(pattern, rf"\g<1>{most}", text)
    copy = folder / name
    copy.write_text(text)
    return copy

"""README, docs and examples run as they are printed."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/optimizer.md", "docs/robot.md"]
EXTRAS = {"ax_client.py", "ray_tune.py", "walking_ant.py"}  # need extras; run by test_ax.py, test_ray.py, test_ant.py
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if path.name not in EXTRAS]


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_in_order(page: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    if any("import torch" in block for block in blocks):
        pytest.importorskip("torch", reason="needs the extra botorch")
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_run(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert "Best guess" in capsys.readouterr().out


def test_the_readme_shows_code_by_line_30() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()[:30]
    assert any(line.startswith("![") for line in lines)
    assert "```python" in lines


def test_links_between_pages_resolve() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"

"""README and docs run as they are printed; what is public is documented; version, extras and licences agree."""

import importlib
import importlib.util
import inspect
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import crashbo

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TORCH = {"docs/optimizer.md", "docs/reference/botorch.md"}  # pages with blocks that need the extra botorch
ELSEWHERE = {"docs/plots.md", "docs/ray.md", "docs/ax.md"}  # run by tests of their own
PAGES = [
    name
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    if "```python" in path.read_text() and (name := path.relative_to(ROOT).as_posix()) not in ELSEWHERE
]
MODULES = ["crashbo", "crashbo.show", "crashbo.adapters.optuna", "crashbo.show.report", "crashbo.safety"]


def _outputs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("outputs", DOCS / "site" / "outputs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["outputs"] = module  # dataclasses look themselves up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES)
def test_python_on_a_page_runs_and_prints_what_the_page_shows(page: str) -> None:
    if page in TORCH:
        pytest.importorskip("botorch", reason="needs the extra botorch")
    ran = _outputs().run_blocks((ROOT / page).read_text(), page)
    assert ran
    for one in ran:
        assert one.is_right, f"{page} shows\n{one.shown}but the code prints\n{one.printed}"


def test_an_outdated_output_is_noticed_and_renewed() -> None:
    page = "```python\nprint('a', 0.5)\n```\n\n```text\nb 0.25\n```\n"
    outputs = _outputs()
    ran = outputs.run_blocks(page, "page")
    assert not ran[0].is_right
    renewed = outputs.renewed(page, ran)
    assert "a 0.5" in renewed
    assert outputs.run_blocks(renewed.replace("0.5\n```", "0.6\n```"), "page")[0].is_right  # may differ a little
    assert not outputs.run_blocks(renewed.replace("0.5\n```", "0.7\n```"), "page")[0].is_right


def test_the_readme_shows_code_by_line_30() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()[:30]
    assert any(line.startswith("![") for line in lines)
    assert "```python" in lines


def test_the_optunahub_package_has_the_figures_of_the_page() -> None:
    """The same toy, with the same words, on both; the page has a column more."""
    pages = [DOCS / "optuna.md", ROOT / "package" / "samplers" / "crashbo" / "README.md"]
    tables = [re.findall(r"^\| (\w+Sampler|sampler) \|(.*)\|$", page.read_text(), re.M) for page in pages]
    page, package = ({name: [cell.strip() for cell in cells.split("|")] for name, cells in table} for table in tables)
    assert page["sampler"] == ["best, median", "worst of 10", "crashes, mean"]
    assert package == {name: [best, crashes] for name, (best, _, crashes) in page.items()}


def test_the_workflow_runs_what_ci_runs() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    commands = " ".join(step["run"] for job in jobs.values() for step in job["steps"] if "run" in step)
    targets = set(re.findall(r"make ([a-z][\w-]*)", commands))
    assert targets == set(re.findall(r"^ *step \w+ make ([a-z][\w-]*)", (ROOT / ".ci" / "run").read_text(), re.M))


@pytest.mark.parametrize("name", ["crashbo.console", "crashbo.store"])
def test_packages_that_need_no_torch_do_not_speak_of_it(name: str) -> None:
    assert "torch" not in str(importlib.import_module(name).__doc__).lower()


def test_links_between_pages_resolve() -> None:
    made = {"tutorials", "sources", "commands.md", "changelog.md", "contributing.md"}  # by the build, which checks them
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            known = target.startswith("http") or (page.parent / target).exists() or made & set(Path(target).parts)
            assert known or page.parent.name == "tutorials", f"{page.name}: {target}"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented_and_in_the_reference(name: str) -> None:
    module = importlib.import_module(name)
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    shown = {one.rpartition(".")[2] for one in re.findall(r"^::: (\S+)", pages, re.M)}
    public = getattr(module, "__all__", [one for one in vars(module) if _is_own(module, one)])
    for one in public:
        if one.startswith("__"):
            continue
        thing = getattr(module, one)
        listed = {one, getattr(thing, "__module__", "").removeprefix("crashbo.")} & shown
        assert listed, f"{name}.{one} is on no page of docs/reference"
        if inspect.isclass(thing) or inspect.isroutine(thing):
            _assert_documented(thing, f"{name}.{one}")


def _is_own(module: ModuleType, name: str) -> bool:
    thing = getattr(module, name)
    here = inspect.isclass(thing) or inspect.isroutine(thing)
    return here and not name.startswith("_") and thing.__module__ == module.__name__


def _assert_documented(thing: Any, name: str) -> None:
    assert inspect.getdoc(thing), f"{name} has no docstring"
    if not inspect.isclass(thing) or not thing.__module__.startswith("crashbo"):
        return
    for member, value in vars(thing).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not member.startswith("_") and (inspect.isroutine(function) or isinstance(value, property)):
            assert inspect.getdoc(getattr(thing, member)), f"{name}.{member} has no docstring"


def test_no_latex_label_is_left_in_what_people_read() -> None:
    label = re.compile(r"\b(?:eq|alg|sec|fig|tab|app|thm):[a-zA-Z]\w*|\\(?:ref|label|cite)\{")
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    for page in pages:
        found = label.search(page.read_text())
        assert found is None, f"{page}: {found}"


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited is not None
    assert crashbo.__version__ == project["version"] == cited[1]


def test_every_extra_is_in_the_table() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = (DOCS / "reference" / "index.md").read_text()
    assert set(re.findall(r"`crashbo\[(\w+)\]`", table)) == set(extras)


def test_every_bundled_library_has_its_licence() -> None:
    assets = ROOT / "src/crashbo/show/report/assets"
    assert "Plotly Technologies Inc." in (assets / "plotly-LICENSE.txt").read_text()
    bundled = [path.name for path in (ROOT / "src").rglob("*.min.*")]
    assert bundled == ["plotly-cartesian.min.js"]


def test_contributing_names_what_exists() -> None:
    named = re.findall(r"`(crashbo(?:\.\w+)+)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(named) >= 20
    for name in named:
        assert _resolves(name), name
    targets = re.findall(r"^([a-z\d]+):", (ROOT / "Makefile").read_text(), re.M)
    for target in re.findall(r"`make ([\w-]+)`", (ROOT / "CONTRIBUTING.md").read_text()):
        assert target in targets or target == "package-core", target


def _resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute, None)
        return found is not None
    return False

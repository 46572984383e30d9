"""What MkDocs does not do by itself: tutorials, commands, and files outside `docs` that pages link to."""

import posixpath
import re
from pathlib import Path
from typing import Any

from commands import commands_page
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from notebooks import HEAVY, LIGHT, OutdatedError, show

ROOT = Path(__file__).parents[2]
_OWN = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_LANGUAGES = {".py": "python", ".sh": "sh", ".yaml": "yaml", ".yml": "yaml", ".cir": "text", ".toml": "toml"}
_SHIM = "https://unpkg.com/iframe-worker/shim"
_LINK = re.compile(r"(?<!!)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, not written."""
    for page, name in {page: name for name, page in _OWN.items()}.items():
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    for name in (*LIGHT, *HEAVY):
        try:
            shown = show(name)
        except OutdatedError as error:
            raise PluginError(str(error)) from error
        files.append(File.generated(config, f"tutorials/{name}.md", content=shown.text))
        files.append(File.generated(config, f"tutorials/{name}.ipynb", content=shown.notebook))
        for file, content in shown.pictures.items():
            files.append(File.generated(config, f"tutorials/{file}", content=content))
    for path in sorted(_linked(files)):
        page = File.generated(config, _page_of(path), content=_source_page(path))
        page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to files outside `docs` lead to the pages that show them."""
    here = page.file.src_uri

    def lead(found: re.Match[str]) -> str:
        path = _outside(here, found[1])
        if path is None:
            return found[0]
        target = _OWN.get(path) or _page_of(path)
        return f"]({posixpath.relpath(target, posixpath.dirname(here) or '.')}{found[2] or ''})"

    return _LINK.sub(lead, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Load the script for searching without a server from here, not from elsewhere; nothing else may be loaded."""
    depth = page.url.count("/")
    local = output.replace(_SHIM, "../" * depth + "assets/iframe-worker.js")
    found = re.search(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?https?://[^\"' >]+", local)
    if found:
        raise PluginError(f"{page.url} loads something from elsewhere: {found[0]}")
    return local


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for pages that are not made from Markdown, such as 404.html."""
    return output_content.replace(_SHIM, "assets/iframe-worker.js")


def _outside(page: str, link: str) -> str | None:
    """The path in the repository of a link that leads out of `docs`; None if it does not."""
    base = "" if page in _OWN.values() else "docs/" + posixpath.dirname(page)
    path = posixpath.normpath(posixpath.join(base, link))
    if page in _OWN.values():  # written for the root; what is in docs is a page already
        return None if not (ROOT / path).exists() or (ROOT / "docs" / path).exists() else path
    return None if path.startswith(("docs/", "..")) or not (ROOT / path).exists() else path


def _page_of(path: str) -> str:
    return f"sources/{path.removesuffix('/').removesuffix('.py').removesuffix('.md')}.md"


def _linked(files: Files) -> set[str]:
    """All files outside `docs` that pages link to, and the scripts of the tutorials."""
    found = {f"examples/{name}.py" for name in (*LIGHT, *HEAVY)}
    for file in files.documentation_pages():
        for match in _LINK.finditer(file.content_string):
            path = _outside(file.src_uri, match[1])
            if path is not None and path not in _OWN:
                found.add(path)
    return found


def _source_page(path: str) -> str:
    """A file as a page; a folder as all its files."""
    whole = ROOT / path
    if whole.is_dir():
        parts = [_listing(file) for file in sorted(whole.iterdir()) if file.is_file()]
        return f"# {path}\n\n" + "\n\n".join(parts)
    if whole.suffix == ".md":
        return whole.read_text(encoding="utf-8")
    return f"# {path}\n\n{_listing(whole, titled=False)}"


def _listing(file: Path, *, titled: bool = True) -> str:
    title = f"## {file.name}\n\n" if titled else ""
    return f"{title}```{_LANGUAGES.get(file.suffix, 'text')}\n{file.read_text(encoding='utf-8').rstrip()}\n```"

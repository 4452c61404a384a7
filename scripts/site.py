"""What the documentation's site has besides docs/: a hook of mkdocs.

The site's root is docs/. Pages of the repository's root are put beside them, README.md as the first
page, and links between both are written anew. The reference has every public name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

import distrain_nb

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    **{name: name for name in ("benchmarks/README.md", "CHANGELOG.md", "CONTRIBUTING.md")},
    **{name: name for name in ("SECURITY.md", "RELEASING.md")},
}
REFERENCE = "reference.md"
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)(?P<path>[^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/, and whatever pages link to there."""
    sources = {page: source for source, page in PAGES.items()}
    for page, source in sources.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, REFERENCE, content=reference()))
    for path in sorted(ROOT.glob("docs/*.md")) + [ROOT / source for source in PAGES]:
        for link in _LINK.finditer(path.read_text(encoding="utf-8")):
            target = _target(path.parent, link["path"])
            outside = target is not None and target.is_file() and not _on_site(target)
            if target is not None and outside and not files.get_file_from_path(_place(target)):
                files.append(File.generated(config, _place(target), abs_src_path=str(target)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Write links as the site has their targets."""
    source = Path(page.file.abs_src_path or "")
    if not source.is_file():
        return markdown
    here = Path(page.file.src_uri).parent

    def moved(link: re.Match[str]) -> str:
        target = _target(source.parent, link["path"])
        if target is None or not target.is_file():
            return link["path"]  # mkdocs names it
        return Path("../" * len(here.parts), _place(target)).as_posix()

    return _LINK.sub(moved, markdown)


def reference() -> str:
    """The page of the public names, each from where it is defined."""
    names = [name for name in distrain_nb.__all__ if not name.startswith("__")]
    lines = ["# Reference of the Python API", "", "`import distrain_nb` offers these names.", ""]
    for name in names:
        thing = getattr(distrain_nb, name)
        lines += [f"::: {thing.__module__}.{thing.__qualname__}", ""]
    return "\n".join(lines)


def _target(folder: Path, link: str) -> Path | None:
    """The file of the repository that a link leads to, None for one that leads out of it."""
    path = (folder / link).resolve()
    return path if path.is_relative_to(ROOT) else None


def _on_site(path: Path) -> bool:
    name = path.relative_to(ROOT)
    return name.parts[0] == "docs" or name.as_posix() in PAGES


def _place(path: Path) -> str:
    """Where the site has a file of the repository."""
    name = path.relative_to(ROOT).as_posix()
    return PAGES.get(name, name.removeprefix("docs/"))

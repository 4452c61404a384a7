"""All pictures on one page, to be looked at side by side."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from scripts.pictures.camera import THEMES, WIDTHS

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.pictures.scenes import Shot

STYLE = """body { font: 14px system-ui, sans-serif; background: #888; margin: 16px; }
section { display: grid; grid-template-columns: repeat(4, auto); gap: 12px; }
section { justify-content: start; }
h2 { grid-column: 1 / -1; margin: 24px 0 0; font-size: 16px; }
img { max-height: 700px; max-width: 100%; align-self: start; }"""


def write_sheet(folder: Path, shots: list[Shot]) -> Path:
    """`index.html`: a row for each state that has pictures."""
    rows = "".join(_row(folder, shot) for shot in shots)
    page = folder / "index.html"
    page.write_text(
        f"<!doctype html><meta charset='utf-8'><title>Pictures</title><style>{STYLE}</style>{rows}",
        encoding="utf-8",
    )
    return page


def _row(folder: Path, shot: Shot) -> str:
    names = [f"{shot.name}-{width}-{theme}.png" for theme in THEMES for width in WIDTHS]
    images = "".join(
        f"<a href='{name}'><img src='{name}' alt='{name}'></a>"
        for name in names
        if (folder / name).exists()
    )
    title = f"<h2>{escape(shot.name)}: {escape(shot.about)}</h2>"
    return f"<section>{title}{images}</section>" if images else ""

"""The pages about the code name files, and names in them, that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("architecture.md", "capture-inside.md")
PLACES = sorted(path.name for path in (ROOT / "distrain_nb" / "places").iterdir())
FILE = r"((?:[\w-]+/)+[\w.-]+\.(?:py|js|css|d\.ts))"
# Sentences that have named a folder give paths below it: `forms/specs.py`, `gathering/resolve.py`.
BELOW = [ROOT / f for f in ("", "distrain_nb", "distrain_nb/program", "distrain_nb/places/vertex")]


def files(name: str) -> list[Path]:
    """Return the files that a page means by a path, at each place that has one."""
    names = [name.replace("PLACE", place) for place in PLACES] if "PLACE" in name else [name]
    return [folder / n for n in names for folder in BELOW if (folder / n).is_file()]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_are_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(f"`{FILE}`", text))
    assert named and {name for name in named if not files(name)} == set()


@pytest.mark.parametrize("page", PAGES)
def test_names_that_a_page_places_in_a_file_stand_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = re.findall(rf"`(?:\w+\.)?(\w+)` in `{FILE}`", text)
    missing = {
        (name, file)
        for name, file in named
        if not any(re.search(rf"\b{name}\b", path.read_text("utf-8")) for path in files(file))
    }
    assert named and missing == set()

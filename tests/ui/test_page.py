"""What the widgets load is what `page/` makes: after a change, `make page` builds it again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import distrain_nb

ROOT = Path(__file__).parents[2]
MADE = ("distrain_nb/ui/static", "jupyter-config/labextension/static")


def texts(folder: Path) -> dict[str, str]:
    files = (path for path in folder.iterdir() if path.is_file())
    return {path.name: path.read_text(encoding="utf-8") for path in files}


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("joined")
    script = ROOT / "scripts" / "page.py"
    subprocess.run([sys.executable, script, "build", root], check=True, timeout=250)
    return root


@pytest.mark.parametrize("folder", MADE)
def test_the_joined_files_are_current(joined: Path, folder: str) -> None:
    changed = "the page's code has changed: run `make page`"
    assert texts(joined / folder) == texts(ROOT / folder), changed


def test_the_extension_has_the_packages_version() -> None:
    described = json.loads((ROOT / "jupyter-config" / "labextension" / "package.json").read_text())
    assert described["version"] == distrain_nb.__version__

"""What the widgets load is what `page/` makes: only who changes it needs Node.js."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "distrain_nb" / "ui" / "static"


def test_the_joined_files_are_current(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "page.py"
    subprocess.run([sys.executable, script, "build", tmp_path], check=True, timeout=250)
    joined = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    present = {
        path.name: path.read_text(encoding="utf-8") for path in STATIC.iterdir() if path.is_file()
    }
    assert joined == present, "the page's code has changed: run `make page`"

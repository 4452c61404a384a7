"""Random notebooks, and random failures; `python -m tests.session.random_notebooks` runs more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("module", "count"), [("notebooks", 200), ("failures", 30)])
def test_by_chance(home: Path, module: str, count: int) -> None:
    command = [sys.executable, "-m", f"tests.session.random_{module}", "1", str(count)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr

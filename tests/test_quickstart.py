"""`make demo`: the main job, end to end, on real data."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat

ROOT = Path(__file__).parents[1]


def test_the_quickstart_trains_to_95_percent_and_brings_it_all_back(home: Path) -> None:
    demo = subprocess.run(
        [sys.executable, "scripts/demo.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert demo.returncode == 0, demo.stderr
    assert "The executed notebook: out/quickstart.ipynb" in demo.stdout
    accuracy = re.search(r"trained on 2 ranks: ([\d.]+)%", demo.stdout)
    assert accuracy and float(accuracy[1]) >= 95
    executed = nbformat.read(ROOT / "out" / "quickstart.ipynb", as_version=4)
    shown = [o.data for c in executed.cells for o in c.get("outputs", []) if "data" in o]
    assert any("application/vnd.plotly.v1+json" in data for data in shown)
    assert any("epoch 12" in data.get("text/html", "") for data in shown)
    assert any(
        "accuracy" in data.get("text/html", "") and "<table" in data["text/html"] for data in shown
    )
    assert (ROOT / "out" / "quickstart.ipynb").stat().st_size < 300_000

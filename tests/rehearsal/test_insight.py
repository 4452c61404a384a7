"""What a run in a cloud shows while it runs: pictures, how far it is, and when it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distrain_nb import submit
from distrain_nb.run.displays import safe
from distrain_nb.run.progress import RunProgress, expected_end
from distrain_nb.run.summary import summary_of
from distrain_nb.worker.metrics.progress import read
from tests.conftest import eventually
from tests.image.services.registries import registry
from tests.vertex.packages import base_with

pytestmark = pytest.mark.slow

# A picture, and bars on both ranks; only rank 0 says a loss, and later than the bar begins.
CELL = """
import base64, os, time
from tqdm import tqdm
from distrain_nb import log_metrics

class Picture:
    def _repr_png_(self):
        dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        return base64.b64decode(dot)

display(Picture())
for step in tqdm(range(400)):
    time.sleep(0.1)
    if REPORTS:
        log_metrics(step=step + 1, of=400, loss=1 / (step + 1))
"""  # noqa: E501
PLACES: dict[str, dict[str, Any]] = {
    "vertex": {"primary": "n1-standard-4", "workers": "n1-standard-4"},
    "sagemaker": {"workers": "2*ml.m5.xlarge"},
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with registry(tmp_path_factory.mktemp("registry")) as host:
        base_with("tqdm").push(f"{host}/bases/tqdm:4")
        yield f"{host}/bases/tqdm:4"


@pytest.mark.parametrize(("place", "reports"), [("vertex", False), ("sagemaker", True)])
def test_a_run_elsewhere_is_seen_as_one_here(
    place: str, reports: bool, base: str, no_docker: None, tmp_path: Path
) -> None:
    code = CELL.replace("REPORTS", str(reports))
    run = submit(code, on=place, base=base, rehearse="", **PLACES[place])

    def is_seen() -> bool:
        assert not run.state.final, run.logs()
        kept = read(run.folder)
        return bool(run.displays) and kept is not None and len(kept.times) >= 3

    try:
        assert eventually(is_seen, 300), run.logs()
        shown = summary_of(run).progress
        assert isinstance(shown, RunProgress)
        assert " of 400 steps, " in shown.text and shown.text.endswith(" left")
        end = expected_end(run.folder, run.status, time.time())
        assert end and 5 < end - run.status.times["running"] < 300
        assert [display.rank for display in run.displays] == [0]
        assert safe(run.displays[0])["image"]["form"] == "image/png"  # type: ignore[typeddict-item]
        assert "[workers 0] [service] distrain:" not in run.logs()
        if reports:
            assert "loss" in run.metrics().columns
    finally:
        run.cancel()
        assert eventually(lambda: run.state.final, 120)

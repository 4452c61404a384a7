"""The bar for long work before there is a run: what is told, and what a cell shows of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from distrain_nb import api
from distrain_nb.program import Cell, Notebook
from distrain_nb.program.progress import CHUNK, report_to
from distrain_nb.worker.files.status import Progress
from tests.kernels import Kernel

SLOW = """
class Slow:
    def __reduce__(self):
        import time
        time.sleep(0.6)
        return int, (1,)
one, two, three = Slow(), Slow(), Slow()
"""

IMPORT_SHOWN = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "distrain_nb.magics.{name}":
            sys.meta_path.remove(self)
            display({{"text/plain": "imported"}}, raw=True)
sys.meta_path.insert(0, Finder())
sys.modules.pop("distrain_nb.magics.{name}", None)
"""


def test_capture_tells_its_phases_and_bytes(tmp_path: Path) -> None:
    weights = np.ones(5 * CHUNK // 16)  # two and a half pieces
    source = api.Source(
        Cell("cell", "print(weights.sum())"), Notebook({"weights": weights}, (), tmp_path)
    )
    told: list[Progress] = []
    with report_to(told.append):
        prepared = api.prepare(source, on="local")
        prepared.job.program.write(tmp_path / "program")
    phases = list(dict.fromkeys(each.phase for each in told))
    assert phases == ["looking at weights", "copying values", "writing values"]
    for phase in phases[1:]:
        steps = [each for each in told if each.phase == phase]
        assert len(steps) >= 3
        assert [each.done for each in steps] == sorted(each.done for each in steps)
        assert steps[-1].done == steps[-1].total >= weights.nbytes
    before = len(told)
    prepared.job.program.write(tmp_path / "again")
    assert len(told) == before  # nobody listens any more


def test_a_cell_shows_a_bar_while_values_are_captured(nb: Kernel) -> None:
    nb.run(SLOW)
    outcome = nb.run("%%distrain -n 1\nprint(one + two + three)")
    shown = [display["text/plain"] for display in outcome.displays]
    bars = [text for text in shown if text.startswith(("looking at", "copying values"))]
    assert bars
    assert bars[0].endswith(" s")
    last = max(place for place, text in enumerate(shown) if text in bars)
    assert shown[last + 1] == ""  # nothing is left of it
    assert "[rank 0] 3" in shown[-2]


@pytest.mark.parametrize(
    ("module", "cell", "sign"),
    [
        ("cell", "%%distrain -n 1 --dry-run\npass", "Preparing the run"),
        ("studies", "%%distrain --tune x=1..2 --dry-run\nprint(x)", "Preparing the study"),
    ],
)
def test_a_first_cell_says_what_it_does_before_the_imports(
    nb: Kernel, module: str, cell: str, sign: str
) -> None:
    nb.run(IMPORT_SHOWN.format(name=module))
    outcome = nb.outcome(nb.send(cell, on_a_page=True))
    shown = [display.get("text/plain", "") for display in outcome.displays]
    assert shown[0].startswith(sign)
    assert shown[1] == "imported"
    assert outcome.cleared == 1  # the next output takes the sign's place
    again = nb.outcome(nb.send(cell, on_a_page=True))
    assert sign not in str(again.displays)

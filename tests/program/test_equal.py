"""What a run has by the notebook's names is equal to what the kernel has, or it is refused."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from tests.fuzzing import several
from tests.program.notebooks import Kernel
from tests.program.random_notebooks import BEGINNING, MODULE, NOTEBOOK, cells, shown

if TYPE_CHECKING:
    from tests.program.notebooks import Server

EXAMPLES = int(os.environ.get("DISTRAIN_EXAMPLES", "0")) or several(120)
REFUSED = "NotAsInNotebook"


AS_RANK = {"RANK": "1", "WORLD_SIZE": "2"}


def outcome(server: Server, notebook: list[str], wanted: list[str]) -> tuple[str, str]:
    """What a kernel that had this rank shows, and what the run; nothing where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        try:
            kernel = _executed(Path(folder), notebook)
            roots = {w.partition(".")[0] for w in wanted if w.isidentifier()}
            there = [w for w in wanted if w not in roots or w in kernel.namespace]
            if not there:
                return "", ""
            text = "\n".join(
                f"print({w!r}, {w if '(' in w or ' ' in w else f'show({w})'})" for w in there
            )
            program = kernel.capture(text)
            if any(str(f.severity) == "error" for f in program.findings):
                return "", ""
            output = server.output(dataclasses.replace(program, variables=AS_RANK))
            sys.modules.pop("state_module", None)
            shows = io.StringIO()
            os.environ.update(AS_RANK)
            rank = _executed(Path(folder), notebook)
            with contextlib.redirect_stdout(shows):
                rank.run(text, quiet=True)
        finally:
            for name in AS_RANK:
                os.environ.pop(name, None)
            sys.path.remove(folder)
            sys.modules.pop("state_module", None)
    return shows.getvalue(), "" if REFUSED in output else output


def _executed(folder: Path, notebook: list[str]) -> Kernel:
    Path(folder, "state_module.py").write_text(MODULE)  # which a notebook may write on
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    kernel = Kernel(folder)
    kernel.run(NOTEBOOK)
    kernel.run(BEGINNING)
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in notebook:
            kernel.run(cell, quiet=True)
    return kernel


@pytest.mark.timeout(0 if "DISTRAIN_EXAMPLES" in os.environ else 900)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=not os.environ.get("DISTRAIN_EXAMPLES"))
@given(cells(), shown())
def test_equal_or_refused(server: Server, notebook: list[str], wanted: list[str]) -> None:
    rank, run = outcome(server, notebook, wanted)
    assert run in ("", rank)

"""What a run has by the notebook's names is equal to what the kernel has, or it is refused."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import assume, given, settings

from tests.fuzzing import several
from tests.program.notebooks import Kernel
from tests.program.random_notebooks import BEGINNING, MODULE, NOTEBOOK, cells, shown

if TYPE_CHECKING:
    from tests.program.notebooks import Server

EXAMPLES = int(os.environ.get("DISTRAIN_EXAMPLES", "0")) or several(150)
REFUSED = "NotAsInNotebook"


def outcome(server: Server, notebook: list[str], wanted: list[str]) -> tuple[str, str]:
    """What the kernel and the run show; the run nothing where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "state_module.py").write_text(MODULE)
        sys.path.insert(0, folder)
        try:
            kernel = Kernel(Path(folder))
            kernel.run(NOTEBOOK)
            kernel.run(BEGINNING)
            with contextlib.redirect_stdout(io.StringIO()):
                for cell in notebook:
                    kernel.run(cell, quiet=True)
            roots = {w.partition(".")[0] for w in wanted if w.isidentifier()}
            there = [w for w in wanted if w not in roots or w in kernel.namespace]
            assume(there)
            text = "\n".join(
                f"print({w!r}, {w if '(' in w or ' ' in w else f'show({w})'})" for w in there
            )
            program = kernel.capture(text)
            if any(str(f.severity) == "error" for f in program.findings):
                return "", ""
            output = server.output(program)
            shows = io.StringIO()
            with contextlib.redirect_stdout(shows):
                kernel.run(text)
        finally:
            sys.path.remove(folder)
            sys.modules.pop("state_module", None)
    return shows.getvalue(), "" if REFUSED in output else output


@settings(max_examples=EXAMPLES, deadline=None)
@given(cells(), shown())
def test_equal_or_refused(server: Server, notebook: list[str], wanted: list[str]) -> None:
    kernel, run = outcome(server, notebook, wanted)
    assert run in ("", kernel)

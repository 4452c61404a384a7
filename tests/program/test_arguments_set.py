"""Arguments that the notebook sets are what ranks have."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kernels import Kernel as NotebookKernel
    from tests.program.notebooks import Kernel, Server


@pytest.fixture(autouse=True)
def _own_arguments() -> Iterator[None]:
    before = sys.argv
    yield
    sys.argv = before


@pytest.mark.parametrize(
    "sets",
    ["sys.argv = ['x', '--lr', '0.5']", "sys.argv[1:] = ['--lr', '0.5']", "put()"],
)
@pytest.mark.parametrize(
    "reads", ["parser.parse_args().lr", "float(last())"], ids=["a parser", "a function"]
)
def test_arguments_that_the_notebook_sets(
    kernel: Kernel, server: Server, sets: str, reads: str
) -> None:
    kernel.run(
        "import sys, argparse\ndef last(): return sys.argv[-1]\n"
        "def put():\n    print('set')\n    sys.argv = ['x', '--lr', '0.5']\n"
        "parser = argparse.ArgumentParser()\n"
        "_ = parser.add_argument('--lr', type=float, default=0.1)"
    )
    kernel.run(sets)
    program = kernel.capture(f"import json\nprint('RESULT', json.dumps({reads}))")
    assert server.results(program) == 0.5


def test_arguments_that_nobody_sets_stay_the_runs_own(kernel: Kernel, server: Server) -> None:
    kernel.run("import sys")
    program = kernel.capture("import json\nprint('RESULT', json.dumps(len(sys.argv)))")
    assert server.results(program) == 1


@pytest.mark.slow
def test_a_kernels_own_arguments_are_not_the_notebooks(nb: NotebookKernel) -> None:
    """IPython's startup files, the extension too, run with a `sys.argv` of their own."""
    nb.run("%load_ext distrain_nb\nimport sys")
    outcome = nb.run("%%distrain -n 1\nprint(len(sys.argv))")
    assert "capture.settings" not in outcome.text
    nb.run("sys.argv = ['x', '--lr', '0.5']")
    outcome = nb.run("%%distrain -n 1 --dry-run\nprint(len(sys.argv))")
    assert "capture.settings" in outcome.text

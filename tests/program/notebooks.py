"""Notebooks for the tests of capture: cells that really run, and programs that really run."""

from __future__ import annotations

import ast
import json
import linecache
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import distrain_nb
from distrain_nb.observed import Observer, observe, stop
from distrain_nb.program import Cell, Notebook, Program, capture


class Kernel:
    """Runs cells one after the other in one namespace, as a notebook's kernel does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.cells: list[Cell] = []
        self.flags = 0
        self.given: dict[str, Any] = {}
        self.observer = Observer(self.namespace, lambda file, line, _: (file, line))

    def run(self, source: str, *, quiet: bool = False) -> None:
        """Run a cell; with `quiet` a failure leaves the names that it had set."""
        cell = Cell(f"Cell In[{len(self.cells) + 1}]", source)
        self.cells.append(cell)
        linecache.cache[cell.label] = (len(source), None, source.splitlines(True), cell.label)
        observe(self.observer)
        self.observer.begin(cell.label)
        try:
            self._execute(source, cell.label)
        except Exception:
            if not quiet:
                raise
        finally:
            self.observer.end()
            stop()

    def _execute(self, source: str, label: str) -> None:
        """Statement by statement, as IPython does."""
        whole = compile(source, label, "exec", self.flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        for node in whole.body:
            one = ast.Module([node], [])
            code = compile(one, label, "exec", self.flags, dont_inherit=True)
            self.flags |= code.co_flags & 0x1FF0000
            failed = True
            self.observer.runs(code)
            try:
                exec(code, self.namespace)
                failed = False
            finally:
                self.observer.ran(code, failed=failed)

    def notebook(self) -> Notebook:
        failed = self.observer.failed
        cells = tuple(replace(cell, failed=failed.get(cell.label)) for cell in self.cells)
        return Notebook(self.namespace, cells, self.folder, self.given, observer=self.observer)

    def capture(self, source: str, **options: Any) -> Program:
        """Capture the next cell: a magic line, then this source."""
        cell = Cell(f"Cell In[{len(self.cells) + 1}]", f"%%distrain -n 2\n{source}")
        return capture(cell, 2, self.notebook(), **options)


def of_rank(kernel: Kernel, rank: int, expression: str) -> Any:
    """What a kernel of that rank has, which has run the same cells."""
    other = Kernel(kernel.folder)
    os.environ["RANK"] = str(rank)
    try:
        for cell in kernel.cells:
            other.run(cell.source)
    finally:
        del os.environ["RANK"]
    return eval(expression, other.namespace)


class Place:
    """A folder with only the worker on the path, where programs run in a fresh interpreter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        own = Path(distrain_nb.__file__).parent
        (folder / "path" / "distrain_nb").mkdir(parents=True)
        shutil.copy(own / "__init__.py", folder / "path" / "distrain_nb")
        shutil.copytree(own / "worker", folder / "path" / "distrain_nb" / "worker")
        self.runs = 0

    def start(self, program: Program) -> subprocess.CompletedProcess[str]:
        """Write the program and run it; a failure is printed as a rank prints it."""
        self.runs += 1
        home = self.folder / f"program-{self.runs}"
        program.write(home)
        script = (
            "import sys\nfrom pathlib import Path\n"
            "from distrain_nb.worker.rank import program, tracebacks\n"
            "try:\n    program.run(Path(sys.argv[1]))\n"
            "except BaseException as error:\n"
            "    print(tracebacks.format_exception(error), file=sys.stderr)\n    sys.exit(1)\n"
        )
        return subprocess.run(
            [sys.executable, "-c", script, str(home)],
            env={**os.environ, "PYTHONPATH": str(self.folder / "path")},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def results(self, program: Program) -> Any:
        """What the program printed behind RESULT, as JSON."""
        done = self.start(program)
        assert done.returncode == 0, done.stderr + "\n" + program.main
        return result_of(program, done.stdout)


def result_of(program: Program, output: str) -> Any:
    """What a program that nothing is wrong with printed behind RESULT, as JSON."""
    assert not [f for f in program.findings if str(f.severity) == "error"], program.findings
    line = next((x for x in output.splitlines() if x.startswith("RESULT ")), "")
    assert line, f"{output}\n{program.main}"
    return json.loads(line.removeprefix("RESULT "))


_SERVE = """
import os, sys, traceback
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from distrain_nb.worker.rank import program, tracebacks
for line in sys.stdin:
    home = line.rstrip()
    child = os.fork()
    if not child:
        out = os.open(os.path.join(home, "output"), os.O_WRONLY | os.O_CREAT)
        os.dup2(out, 1); os.dup2(out, 2)
        try:
            program.run(Path(home))
        except BaseException as error:
            print(tracebacks.format_exception(error))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    print("done", flush=True)
"""


class Server:
    """Runs one program after the other, each in a process that is forked from one interpreter
    which has only the worker loaded: a few milliseconds each."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", _SERVE, str(path)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def output(self, program: Program) -> str:
        """What a program prints, a traceback included."""
        home = Path(tempfile.mkdtemp())
        try:
            program.write(home)
            assert self.process.stdin and self.process.stdout
            self.process.stdin.write(f"{home}\n")
            self.process.stdin.flush()
            assert self.process.stdout.readline() == "done\n"
            return (home / "output").read_text()
        finally:
            shutil.rmtree(home)

    def results(self, program: Program) -> Any:
        """What the program printed behind RESULT, as JSON."""
        return result_of(program, self.output(program))

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

"""A program as its author starts it, and as a cell: whole, spread over cells, as a function.

A program is a script whose docstring has two indented lines: the options of `%%distrain`, and the
command that its author would type. `# %%` parts it into the cells of a notebook, of which the last
is the training cell. What it prints behind `RESULT ` is what has to agree.
"""

from __future__ import annotations

import ast
import json
import multiprocessing
import os
import re
import runpy
import shlex
import socket
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb.worker.rank.values import VALUES_FOLDER

if TYPE_CHECKING:
    from distrain_nb.program import Program as Planned

HERE = Path(__file__).parent
FOLDERS = ("pytorch", "libraries", "mpi", "tensorflow")
WITHIN_S = 240

# The same for kernels and scripts, so that one fork server serves them all.
VARIABLES = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}

_RESULT = re.compile(r"^(?:\[[^\]]*\] ?)?RESULT (?P<value>.*)$", re.M)

# What starts a command as torchrun's own script does, with this environment's interpreter.
COMMANDS = {
    "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone"],
    "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
}

# The end of a script that plans its function, and submits it unless it is the program of cells that
# have run.
END = """

if __name__ == "__main__":
    import distrain_nb
    from tests.programs.running import is_alike

    for finding in distrain_nb.check(job, **{options!r}):
        if str(finding.severity) != "info":
            print("FINDING", finding)
    if is_alike(distrain_nb.plan(job, **{options!r}).job.program, {cells!r}):
        print("ALIKE")
    else:
        print(distrain_nb.submit(job, wait=True, **{options!r}).logs())
"""

# Each script runs in a fork of a process that has imported what most scripts import.
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["torch", "torch.distributed", "distrain_nb.api"])


@dataclass(frozen=True)
class Program:
    """A program of one of the folders."""

    path: Path

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def docstring(self) -> str:
        return ast.get_docstring(ast.parse(self.text)) or ""

    @property
    def title(self) -> str:
        return self.docstring.partition("\n")[0].rstrip(".")

    @property
    def options(self) -> str:
        """What stands behind `%%distrain`."""
        return self._line("%%distrain").removeprefix("%%distrain").strip()

    @property
    def command(self) -> str:
        """What its author types, without the script's name: `torchrun --nproc-per-node 2`."""
        return next(
            line for word in (*COMMANDS, "python", "TF_CONFIG") if (line := self._line(word))
        )

    @property
    def cells(self) -> list[str]:
        """Its parts; the last is the training cell."""
        return [part.strip("\n") for part in re.split(r"^# %%.*$", self.text, flags=re.M)]

    def _line(self, begin: str) -> str:
        lines = (line.strip() for line in self.docstring.splitlines())
        return next((line for line in lines if line.startswith(begin)), "")


def programs() -> list[Program]:
    return [Program(path) for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py"))]


def results(printed: str) -> list[Any]:
    """What was printed as a result, in an order that doesn't depend on who was first."""
    found = [json.loads(line["value"]) for line in _RESULT.finditer(printed)]
    return sorted(found, key=lambda value: json.dumps(value, sort_keys=True))


def as_its_author_does(program: Program, folder: Path) -> list[Any]:
    """Run the script by its own command; gives its results."""
    script = folder / program.path.name
    script.write_text(program.text, encoding="utf-8")
    word, *rest = shlex.split(program.command)
    # What ranks print at once is mixed within lines otherwise.
    buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    if word == "TF_CONFIG":
        return results(_with_tf_config(script, int(rest[0])))
    if word == "python":
        return results(_printed([sys.executable, script.name], folder, buffered))
    logs = folder / "logs"  # on the way to a terminal, what ranks print at once is mixed
    to_files = {
        "torchrun": ["--redirects=1", f"--log-dir={logs}"],
        "mpirun": ["--output-filename", str(logs), sys.executable],
    }[word]
    _printed([*COMMANDS[word], *rest, *to_files, script.name], folder, buffered)
    return results("".join(path.read_text() for path in logs.rglob("stdout*")))


def as_function(program: Program, folder: Path, cells: str) -> tuple[list[Any] | None, list[str]]:
    """Submit it from a Python script, as a function; gives its results and findings.

    There are no results where a run of its function does what a run of its spread cells did. So it
    is if the programs are equal but for the line that calls the function, no values travel, and the
    training defines no function or class, to which its scope would matter.

    Args:
        program: The program.
        folder: Where the script is to be.
        cells: The text of the spread cells' program, if that has run and no values travelled with
            it; else empty.
    """
    script = _script(program, folder, "" if _defines(program.cells[-1]) else cells)
    said = folder / "said"
    process = _forks.Process(target=_run, args=(script, said, {**os.environ, **VARIABLES}))
    process.start()
    process.join(WITHIN_S)
    process.kill()
    process.join()
    printed = said.read_text("utf-8", "replace")
    assert process.exitcode == 0, printed[-8000:]
    return (
        None if re.search(r"^ALIKE$", printed, re.M) else results(printed),
        re.findall(r"^FINDING (.*)$", printed, re.M),
    )


def is_alike(planned: Planned, cells: str) -> bool:
    """Say whether a function's program is that of spread cells, in another scope."""
    if not cells:
        return False
    with tempfile.TemporaryDirectory() as folder:
        planned.write(Path(folder))
        if Path(folder, VALUES_FOLDER).exists():
            return False
        *before, job, call = ast.parse(Path(folder, "main.py").read_text("utf-8")).body
    assert isinstance(job, ast.FunctionDef) and isinstance(call, ast.Assign)
    return ast.dump(ast.Module([*before, *job.body], [])) == ast.dump(ast.parse(cells))


def _defines(code: str) -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Global)
    return any(isinstance(node, kinds) for node in ast.walk(ast.parse(code)))


def _run(script: Path, said: Path, environment: dict[str, str]) -> None:
    """Be the process of a script, whose output goes to a file."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(script.parent)
    sys.argv = [str(script)]
    sys.path[:0] = [str(script.parent), *environment.get("PYTHONPATH", "").split(os.pathsep)]
    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    runpy.run_path(str(script), run_name="__main__")
    sys.stdout.flush()


def _script(program: Program, folder: Path, cells: str) -> Path:
    """Write the script in which a function trains."""
    from distrain_nb.magics.command_line import cell_options

    *before, last = program.cells
    options = cell_options(shlex.split(program.options)) or {}
    body = textwrap.indent(last, "    ")
    text = "\n\n".join([*before, f"def job():\n{body}"]) + END.format(options=options, cells=cells)
    script = folder / f"submit_{program.path.name}"
    script.write_text(text, encoding="utf-8")
    return script


def _printed(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**environment, **VARIABLES},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    return done.stdout


def _with_tf_config(script: Path, workers: int) -> str:
    """TensorFlow's way: a process each worker, told its place by a variable."""
    addresses = [f"127.0.0.1:{_free_port()}" for _ in range(workers)]
    started = []
    for index in range(workers):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        started.append(
            subprocess.Popen(
                [sys.executable, str(script)],
                cwd=script.parent,
                env={**os.environ, **VARIABLES, "TF_CONFIG": json.dumps(config)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    printed = [process.communicate(timeout=WITHIN_S)[0] for process in started]
    assert not any(process.returncode for process in started), "\n".join(printed)
    return "\n".join(printed)


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])

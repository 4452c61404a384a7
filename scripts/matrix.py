"""The wheel in fresh environments: `python -m scripts.matrix [ROW…]`, rows by their numbers from 1.

For each row of ROWS, one after the other, below a temporary folder: an environment with that
Python, the wheel, a front end, and the oldest or newest version of each package that
`pyproject.toml` allows (`uv`'s `lowest-direct` and `highest`; no package is built). There the
package is imported, a real kernel runs a cell as two ranks, the front end's server answers for our
extension and lists that of the page, and some quick tests of this checkout pass, without the
checkout's own package. `twine` looks at the wheel and the source distribution first.

The last lines are the table of `docs/compatibility.md`, for the rows that were run. The exit status
is 1 where something fails.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/program/test_order.py",
    "tests/run/test_index.py",
    "tests/secrets/test_named.py",
    "tests/tuning/test_study_text.py",
    "tests/ui/test_views.py",
    "tests/worker/test_log.py",
)
# What the tests import besides, of any version.
OF_TESTS = (
    "hypothesis",
    "ipykernel",
    "nbclient",
    "psutil",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
)
LAB_42, LAB, NOTEBOOK = "jupyterlab==4.2.*", "jupyterlab>=4.6,<5", "notebook>=7.5,<8"
NAMED = ("ipython", "ipywidgets", "anywidget", "numpy", "pandas")

KERNEL = """
import sys, nbformat
from nbclient import NotebookClient
cells = ["%load_ext distrain_nb", '''%%distrain -n 2
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])''', '''
import distrain_nb as d
run = d.attach("last")
print(run.state, sorted(line.text for line in run.lines()))''']
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=180, kernel_name="python3").execute()
said = "".join(output.get("text", "") for output in notebook.cells[2].outputs)
assert said.strip() == "succeeded ['rank 0 of 2', 'rank 1 of 2']", said
"""
SERVER = """
import json, subprocess, sys, time, urllib.request
from pathlib import Path
import os
runtime = Path(os.environ["JUPYTER_RUNTIME_DIR"])
options = ["--no-browser", "--allow-root", "--port=0", "--ip=127.0.0.1"]
command = [sys.executable, "-m", sys.argv[1], *options]
server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    end = time.monotonic() + 120
    while True:
        try:
            (file,) = runtime.glob("jpserver-*.json")
            told = json.loads(file.read_text())
            asked = urllib.request.Request(told["url"] + "distrain/version",
                                           headers={"Authorization": "token " + told["token"]})
            answer = json.loads(urllib.request.urlopen(asked, timeout=10).read())
            break
        except (ValueError, OSError):
            assert time.monotonic() < end and server.poll() is None, "the server does not answer"
            time.sleep(0.2)
finally:
    server.terminate()
    server.wait()
import distrain_nb
assert answer["version"] == distrain_nb.__version__, answer
listed = subprocess.run([sys.executable, "-m", "jupyter", "labextension", "list"],
                        capture_output=True, text=True)
assert "distrain-nb" in listed.stdout + listed.stderr, listed
"""


@dataclass(frozen=True)
class Row:
    """An environment: `oldest` has the lowest version of each package that we name."""

    python: str
    front_end: str
    oldest: bool = False

    @property
    def resolution(self) -> str:
        return "lowest-direct" if self.oldest else "highest"

    @property
    def module(self) -> str:
        return self.front_end.partition("=")[0].rstrip(">")


ROWS = (
    Row("3.10", LAB_42, oldest=True),
    Row("3.10", LAB),
    Row("3.11", LAB_42, oldest=True),
    Row("3.11", NOTEBOOK),
    Row("3.12", LAB_42, oldest=True),
    Row("3.12", LAB),
    Row("3.13", LAB_42, oldest=True),
    Row("3.13", NOTEBOOK),
    Row("3.14", LAB, oldest=True),
    Row("3.14", LAB),
)


class Failed(Exception):
    """A command of a row has failed."""


def run(*command: object, folder: Path, environment: dict[str, str] | None = None) -> str:
    """Return what a command prints. Raises Failed."""
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))[:200]}\n{done.stdout[-6000:]}")
    return done.stdout


@dataclass
class Environment:
    """A row's environment in a folder of its own, and how it did."""

    row: Row
    folder: Path
    wheel: Path
    versions: str = ""
    failed: list[str] = field(default_factory=list)

    @property
    def python(self) -> Path:
        return self.folder / "environment" / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        """Nothing of the user's, nor of this checkout's."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
        own = {
            "DISTRAIN_HOME": "home",
            "IPYTHONDIR": "ipython",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
        }
        return {**kept, **{name: str(self.folder / at) for name, at in own.items()}}

    def install(self) -> None:
        """Make it, with the wheel's packages in the versions that the row wants."""
        uv, row = ("uv", "pip", "install", "--python", self.python, "--no-build"), self.row
        run("uv", "venv", "--python", row.python, self.python.parents[1], folder=self.folder)
        wheel = f"distrain-nb @ {self.wheel.as_uri()}"
        # Of a wheel's requirements `lowest-direct` takes the newest: they are not direct.
        direct = ("-r", ROOT / "pyproject.toml", row.front_end)
        run(*uv, "--resolution", row.resolution, wheel, *direct, folder=self.folder)
        run(*uv, *OF_TESTS, folder=self.folder)  # changes nothing that is there
        listed = run("uv", "pip", "freeze", "--python", self.python, folder=self.folder)
        versions = dict(line.split("==") for line in listed.splitlines() if "==" in line)
        if row.oldest and not f"{versions['ipython']}.".startswith(f"{oldest('ipython')}."):
            raise Failed(f"IPython {versions['ipython']} is not the oldest")
        names = (row.module, *NAMED)
        self.versions = ", ".join(f"{name} {versions[name]}" for name in names)

    def check(self) -> None:
        """Try all, and note what fails."""
        tests = self.folder / "checkout"
        for name in ("tests", "scripts", "notebooks"):
            shutil.copytree(ROOT / name, tests / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", tests)
        for name, command in {
            "import": ("-c", "import distrain_nb; distrain_nb.submit, distrain_nb.attach"),
            "kernel": ("-c", KERNEL),
            "server": ("-c", SERVER, self.row.module),
            "tests": ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *TESTS),
        }.items():
            try:
                run(self.python, *command, folder=tests, environment=self.variables)
            except Failed as failed:
                print(f"{self.row}: {name}: {failed}", flush=True)
                self.failed.append(name)

    def end(self) -> None:
        """End what still waits for work there, as fork servers do."""
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if file.read_bytes().startswith(os.fsencode(self.folder)):
                    os.kill(int(file.parent.name), signal.SIGTERM)


def oldest(package: str) -> str:
    """Return the lowest version that `pyproject.toml` allows."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(rf'"{package}>=([\d.]+)', text)[0]


def built(folder: Path) -> Path:
    """Build the wheel and the source distribution, have twine look at them; return the wheel."""
    run("uv", "build", "--out-dir", folder, ROOT, folder=folder)
    files = [path for path in folder.iterdir() if path.name.startswith("distrain_nb-")]
    print(run("uv", "tool", "run", "twine", "check", "--strict", *files, folder=folder), flush=True)
    return next(path for path in files if path.suffix == ".whl")


def tried(row: Row, wheel: Path) -> Environment:
    """Return how a row did; its environment is gone."""
    with tempfile.TemporaryDirectory(prefix="matrix-") as name:
        environment, began = Environment(row, Path(name), wheel), time.monotonic()
        try:
            environment.install()
        except Failed as failed:
            print(f"{row}: install: {failed}", flush=True)
            environment.failed.append("install")
        else:
            environment.check()
        environment.end()
    result = f"{environment.failed or 'passed'} in {time.monotonic() - began:.0f} s"
    print(f"{row}: {result}; {environment.versions}", flush=True)
    return environment


def main(*numbers: int) -> int:
    """Return the exit status."""
    own, pyenv = Path(sys.executable).parent, Path.home() / ".pyenv" / "versions"
    pythons = map(str, (own, *pyenv.glob("*/bin")))  # its shims start one version alone
    os.environ["PATH"] = os.pathsep.join((*pythons, os.environ["PATH"]))
    rows = [ROWS[number - 1] for number in numbers] or ROWS
    with tempfile.TemporaryDirectory(prefix="wheel-") as name:
        wheel = built(Path(name))
        environments = [tried(row, wheel) for row in rows]
    print("| Python | packages | | |\n|---|---|---|---|")
    for each in environments:
        age = "oldest" if each.row.oldest else "newest"
        result = f"fails: {', '.join(each.failed)}" if each.failed else "passes"
        print(f"| {each.row.python} | {age} | {each.versions or each.row.front_end} | {result} |")
    return int(any(each.failed for each in environments))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

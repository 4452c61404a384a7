"""What IPython understands and Python does not, inside a cell.

IPython's own transformers find its lines, never inside a string or brackets. What has a
plain meaning is translated, what only concerns the screen is dropped, the rest is refused. A line
is always replaced by one line, so that line numbers stay.
"""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass
from functools import lru_cache

from distrain_nb.findings import Severity

_DROPPED = {
    *("matplotlib", "load_ext", "reload_ext", "unload_ext", "autoreload", "aimport", "config"),
    *("precision", "xmode", "pdb", "colors", "tensorboard", "pylab", "who", "whos", "who_ls"),
}
_CELL_DROPPED = {"time", "timeit", "capture", "prun", "memit", "mprun"}
_ADVICE = {
    "timeit": "measure with time.perf_counter()",
    "run": "`%distrain run FILE` makes a job of it; or import the file's functions",
    "cd": "use os.chdir(...)",
    "pip": "name the package with --require",
    "conda": "name the package with --require",
    "mamba": "name the package with --require",
    "uv": "name the package with --require",
    "store": "assign the variable in a cell, and it is captured",
    "distrain": "put it in a cell of its own",
    "bash": "use subprocess.run([...], check=True)",
    "sh": "use subprocess.run([...], check=True)",
    "sx": "use subprocess.run([...], check=True)",
    "writefile": "write the file in Python, or add it with --include",
}
# Commands that start the ranks of a script, and their option for how many.
_LAUNCHES = re.compile(
    r"\b(torchrun|horovodrun|mpirun|mpiexec|deepspeed|accelerate(-| )launch|colossalai run)\b"
    r"|-m (torch\.distributed\.(run|launch)|accelerate\.commands\.launch)\b"
)
_COUNT = re.compile(r"--?(nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus|np|n)(=(.*))?")
_MAGIC = re.compile(r"%([\w.]+)\s*(.*)", re.S)
_PASSED = re.compile(r"\s*$|pass  # ")  # blank, or left out already
_ENV = re.compile(r"(\w+)(?:\s*=\s*|\s+)(.*)", re.S)


@dataclass(frozen=True)
class SyntaxNote:
    """A line of IPython's syntax: what became of it."""

    line: int
    severity: Severity
    message: str


@dataclass(frozen=True)
class PlainCell:
    """A cell as plain Python, line for line. `refused` are lines that have no plain meaning.

    `tree` is the parsed text, or `error` says why there is none.
    """

    text: str
    notes: tuple[SyntaxNote, ...]
    tree: ast.Module | None
    error: SyntaxError | ValueError | None = None

    @property
    def refused(self) -> tuple[SyntaxNote, ...]:
        return tuple(n for n in self.notes if n.severity is Severity.ERROR)


@lru_cache(maxsize=4096)
def plain(source: str) -> PlainCell:
    """Return a cell with IPython's syntax translated, dropped or refused."""
    tree, error = _parse(source)
    if tree is not None:
        return PlainCell(source, (), tree)
    lines, notes = _replaced(source.split("\n"))
    text = "\n".join(lines)
    return PlainCell(text, tuple(notes), *(_parse(text) if notes else (None, error)))


def _parse(source: str) -> tuple[ast.Module | None, SyntaxError | ValueError | None]:
    try:
        return ast.parse(source), None
    except (SyntaxError, ValueError) as error:
        return None, error


def _replaced(lines: list[str]) -> tuple[list[str], list[SyntaxNote]]:
    lines, notes = [*lines], []
    while (start := _special(lines)) is not None:
        end = start + 1
        while lines[end - 1].endswith("\\") and end < len(lines):
            end += 1
        indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
        code = " ".join(line.rstrip("\\").strip() for line in lines[start:end])
        replacement, severity, message = _translate(code)
        notes.append(SyntaxNote(start + 1, severity, message))
        if lines[start].startswith("%%") and severity is Severity.ERROR:
            end = len(lines)  # the rest is not Python
        lines[start:end] = [indent + replacement, *[""] * (end - start - 1)]
    return lines, notes


def _special(lines: list[str]) -> int | None:
    """Return the first line of IPython's syntax that is left."""
    first = next((n for n, line in enumerate(lines) if not _PASSED.match(line)), 0)
    if lines[first].startswith("%%"):
        return first  # what follows may be no Python
    from IPython.core import inputtransformer2 as own

    try:
        tokens = own.make_tokens_by_line([f"{line}\n" for line in lines])
    except SyntaxError:  # of its indentation
        return None
    kinds = (own.MagicAssign, own.SystemAssign, own.EscapedCommand, own.HelpEnd)
    starts = [special.start_line for kind in kinds if (special := kind.find(tokens))]
    return min(starts, default=None)


def _translate(code: str) -> tuple[str, Severity, str]:
    if not code.startswith(("%", "!", "?")):
        return _refuse(code, code.partition("=")[2].strip() if code[-1] != "?" else code)
    if code.startswith("%%"):
        name = code[2:].split()[0] if code[2:].split() else ""
        return _drop(code) if name in _CELL_DROPPED else _refuse(code, code)
    magic = _MAGIC.match(code)
    if magic is None or code.endswith("?"):
        return _refuse(code, code)
    name, rest = magic.groups()
    if name in _DROPPED or (name in ("env", "set_env") and not rest):
        return _drop(code)
    if name == "time":
        return rest or "pass", Severity.INFO, f"`{code}` runs as `{rest}`, without the timing"
    text, severity, message = _refuse(code, code)
    if name not in ("env", "set_env"):
        return text, severity, message
    parts = _ENV.fullmatch(rest)
    if parts is None or "$" in rest or "{" in rest:
        return text, severity, f"`{code}` has no equal in Python: set os.environ[...] instead"
    text = f"import os; os.environ[{parts[1]!r}] = {parts[2].strip()!r}"
    return text, Severity.INFO, f"`{code}` became `{text}`"


def _drop(code: str) -> tuple[str, Severity, str]:
    return f"pass  # {code}", Severity.INFO, f"`{code}` has no effect in a run and was left out"


def _refuse(code: str, special: str) -> tuple[str, Severity, str]:
    name = next(iter(special.lstrip("%").split()), "")
    advice = _ADVICE.get(name, "run it in a cell of its own, or write it in Python")
    if special.startswith("!"):
        is_pip = re.match(r"!+\s*(pip|conda|mamba|uv)\b", special)
        advice = _ADVICE["pip" if is_pip else "bash"]
        if line := run_line(special.lstrip("!")):
            advice = f"it starts ranks itself: write `{line}` in a cell of its own"
    elif special.startswith("?") or special.endswith("?"):
        advice = "ask for help in a cell of its own"
    message = f"`{code}` is IPython syntax, not Python: {advice}"
    return f"pass  # {code}", Severity.ERROR, message


def run_line(command: str) -> str:
    """Return the line that runs a launcher's script, `%distrain run -n 2 fit.py`; empty for another
    command, or one that names no script."""
    if not _LAUNCHES.search(command):
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    ranks = ""
    for place, word in enumerate(words):
        if count := _COUNT.fullmatch(word):
            ranks = count[3] or words[place + 1] if len(words) > place + 1 or count[3] else ""
        if word.endswith(".py"):
            number = f"-n {ranks} " if ranks.isdigit() else ""
            return f"%distrain run {number}{shlex.join(words[place:])}"
    return ""

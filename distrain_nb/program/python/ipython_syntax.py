"""What IPython understands and Python does not, inside a cell.

Lines are looked at only where a statement starts, never inside a string or brackets. What has a
plain meaning is translated, what only concerns the screen is dropped, the rest is refused. A line
is always replaced by one line, so that line numbers stay.
"""

from __future__ import annotations

import ast
import re
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
_MAGIC = re.compile(r"%([\w.]+)\s*(.*)", re.S)
_ASSIGNED = re.compile(r"^[\w.,\s*\[\]\"']+=\s*([%!])(?!=)")
_HELP = re.compile(r"^(\?{1,2}\s*[%\w.*]+|%{0,2}[\w.*]+(\[.+\])?\?{1,2})\s*;?\s*$")
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
    """A cell with IPython's syntax translated, dropped or refused."""
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
    lines, notes, position = [*lines], [], 0
    while position < len(lines):
        end = position + 1
        if _is_special(lines[position]):
            while lines[end - 1].endswith("\\") and end < len(lines):
                end += 1
            replacement, severity, message = _replace(lines[position:end])
            notes.append(SyntaxNote(position + 1, severity, message))
            if lines[position].startswith("%%") and severity is Severity.ERROR:
                end = len(lines)  # the rest is not Python
            lines[position:end] = [replacement, *[""] * (end - position - 1)]
        else:
            end = _end_of_statement(lines, position)
        position = end
    return lines, notes


def _is_special(line: str) -> bool:
    code = line.strip()
    return (
        code.startswith(("%", "!", "?")) or bool(_ASSIGNED.match(code)) or bool(_HELP.match(code))
    )


def _replace(lines: list[str]) -> tuple[str, Severity, str]:
    first = lines[0]
    indent = first[: len(first) - len(first.lstrip())]
    code = " ".join(line.rstrip("\\").strip() for line in lines)
    text, severity, message = _translate(code)
    return indent + text, severity, message


def _translate(code: str) -> tuple[str, Severity, str]:
    assigned = _ASSIGNED.match(code)
    if assigned and not code.startswith(("%", "!", "?")):
        return _refuse(code, code[assigned.start(1) :])
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
    if name in ("env", "set_env"):
        return _environment(code, rest)
    return _refuse(code, code)


def _environment(code: str, rest: str) -> tuple[str, Severity, str]:
    parts = _ENV.fullmatch(rest)
    if parts is None or "$" in rest or "{" in rest:
        text, severity, _ = _refuse(code, code)
        return text, severity, f"`{code}` has no equal in Python: set os.environ[...] instead"
    text = f"import os; os.environ[{parts[1]!r}] = {parts[2].strip()!r}"
    return text, Severity.INFO, f"`{code}` became `{text}`"


def _drop(code: str) -> tuple[str, Severity, str]:
    return f"pass  # {code}", Severity.INFO, f"`{code}` has no effect in a run and was left out"


def _refuse(code: str, special: str) -> tuple[str, Severity, str]:
    return (
        f"pass  # {code}",
        Severity.ERROR,
        f"`{code}` is IPython syntax, not Python: {_advice(special)}",
    )


def _advice(special: str) -> str:
    if special.startswith("!") and re.match(r"!+\s*(pip|conda|mamba|uv)\b", special):
        return _ADVICE["pip"]
    if special.startswith("!"):
        return _ADVICE["bash"]
    if special.startswith("?") or special.endswith("?"):
        return "ask for help in a cell of its own"
    name = special.lstrip("%").split()[0] if special.lstrip("%").split() else ""
    return _ADVICE.get(name, "run it in a cell of its own, or write it in Python")


# -- where statements end -------------------------------------------------------------------------

_TOKEN = re.compile(r"""\#.*|(?P<quote>\"{3}|'{3}|\"|')|(?P<open>[(\[{])|(?P<close>[)\]}])|\\.?""")


def _end_of_statement(lines: list[str], start: int) -> int:
    """The line behind the logical line that starts at `start`."""
    depth, quote = 0, ""
    for number in range(start, len(lines)):
        depth, quote = _scan(lines[number], depth, quote)
        continued = lines[number].endswith("\\")
        if len(quote) == 1 and not continued:
            quote = ""  # a string that never ends: let Python complain about it
        if not depth and not quote and not continued:
            return number + 1
    return len(lines)


def _scan(line: str, depth: int, quote: str) -> tuple[int, str]:
    position = 0
    while position < len(line):
        if quote:
            end = re.compile(r"\\.|" + re.escape(quote)).search(line, position)
            if end is None:
                return depth, quote
            quote = "" if end[0] == quote else quote
            position = end.end()
            continue
        token = _TOKEN.search(line, position)
        if token is None:
            break
        quote = token["quote"] or ""
        depth = max(0, depth + bool(token["open"]) - bool(token["close"]))
        position = token.end()
    return depth, quote

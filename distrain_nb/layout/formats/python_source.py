"""Python read in its own order without running it: what names, items and calls stand for.

A block that may or may not run is read as if it ran once. What it changed is unknown afterwards.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.python_calls import Calls
from distrain_nb.layout.formats.python_names import MISSING, Call, Function, Mutation, Unread
from distrain_nb.layout.formats.python_values import is_plain, parameters

_TIMED = re.compile(r"%time(?:it)?[ \t]+(?=[A-Za-z_])")
_COMMAND = re.compile(r"[!%].*|[\w.]+\?+[ \t]*|(?:pip3?|conda) install .*")
_ASSIGNED = re.compile(r"(\w[\w, ]*=)[ \t]*[!%].*")
# An open string ends with its line, so that none is looked at twice.
_TOKENS = re.compile(r"""\"{3}|'{3}|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|\#.*|[\[({]|[\])}]""")


class PythonSource(Calls):
    """Names and calls of a text, all statements read. Raises OptionError for unreadable ones."""

    def __init__(
        self,
        text: str,
        is_kept: Callable[[Call], bool],
        positions: Mapping[str, Sequence[str]],
    ) -> None:
        super().__init__(is_kept, positions)
        self.shown: list[tuple[str, object]] = []
        try:
            self._run(parsed(text).body)
        except (ValueError, RecursionError, MemoryError) as error:
            raise OptionError(f"unreadable Python: {error or 'it is nested too deeply'}") from None

    def _run(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self._line = statement.lineno
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value)
            for target in node.targets:
                self._assign(target, value)
        elif isinstance(node, ast.Expr):
            self.shown.append(("", self._value(node.value)))
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self._value(node.value))
        else:
            self._other_statement(node)

    def _other_statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.AugAssign):
            self._augment(node)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._delete(target)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._define(node)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for manager in node.items:
                value = self._value(manager.context_expr)
                if manager.optional_vars is not None:
                    self._assign(manager.optional_vars, Unread(node.lineno), value)
            self._run(node.body)
        elif isinstance(node, ast.If):
            self._if(node)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                self._write(self.names, (alias.asname or alias.name).split(".")[0], Unread())
        else:
            self._blocks_of(node)

    def _blocks_of(self, node: ast.stmt) -> None:
        """Return the blocks of any other statement, each of which may run or not."""
        bodies: list[Sequence[ast.AST]] = []
        for _, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                self._value(value)
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                bodies.append(value)
            elif isinstance(value, list):
                bodies += [[statement] for statement in value if isinstance(statement, ast.AST)]
        targets = [node.target] if isinstance(node, (ast.For, ast.AsyncFor)) else []
        ends = node.finalbody if isinstance(node, ast.Try) else []
        self._maybe([body for body in bodies if body is not ends], targets)
        self._run(ends)

    def _if(self, node: ast.If) -> None:
        test = self._value(node.test)
        if not isinstance(test, (Unread, Call)):
            self._run(node.body if test else node.orelse)
        else:
            self._maybe([node.body, node.orelse], [])

    def _maybe(self, bodies: Iterable[Sequence[ast.AST]], targets: Sequence[ast.expr]) -> None:
        """Read each body as if it ran, then take for unknown what any of them changed."""
        changes = [change for body in bodies for change in self._read(body, targets)]
        self._mark(changes)

    def _read(self, body: Sequence[ast.AST], targets: Sequence[ast.expr]) -> list[Mutation]:
        """Read a block whose targets have unknown values, and return its changes."""

        def read() -> None:
            for target in targets:
                self._assign(target, Unread(target.lineno))
            for node in body:
                if isinstance(node, ast.stmt):
                    self._run([node])
                elif isinstance(node, ast.expr):
                    self._value(node)
                else:
                    self._clause(node)

        return self._block(read)

    def _clause(self, node: ast.AST) -> None:
        """Read an `except` or a `case`: the names that it binds, and its body."""
        for part in ast.walk(getattr(node, "pattern", node)):
            for name in (getattr(part, "name", None), getattr(part, "rest", None)):
                if isinstance(name, str):
                    self._write(self.names, name, Unread(self._line))
            if part is node:
                break
        self._run(getattr(node, "body", ()))

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self._value(decorator)
        shared = {name for statement in ast.walk(node) if isinstance(statement, ast.Global)
                  for name in statement.names}  # fmt: skip
        names_of_arguments = [] if isinstance(node, ast.ClassDef) else parameters(node.args)
        changes = [
            change
            for change in self._read(node.body, names_of_arguments)
            if change.container is not self.names or change.key in shared
        ]
        self._mark(changes)
        self._write(self.names, node.name, Function(changes))

    def _delete(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._write(self.names, target.id, MISSING)
        elif isinstance(target, ast.Subscript):
            container, key = self._value(target.value), self._value(target.slice)
            is_item = isinstance(container, dict) and is_plain(key)
            self._entry(container, key, MISSING if is_item else Unread(target.lineno))

    def _augment(self, node: ast.AugAssign) -> None:
        old = self._value(node.target)
        value = self._calculated(node.op, old, self._value(node.value))
        if isinstance(old, list) and isinstance(value, list):
            for member in value[len(old) :]:
                self._write(old, None, member)
        elif isinstance(old, dict) and isinstance(value, dict):
            self._update(old, value)
        else:
            if isinstance(old, (list, dict)):
                self._taint(old)
            self._assign(node.target, value)


def parsed(text: str) -> ast.Module:
    """Return the text's statements, with IPython's commands passed over. Raises OptionError."""
    try:
        try:
            return _tree(text)
        except SyntaxError:
            return _tree(without_magics(text))
    except SyntaxError as error:
        raise OptionError(f"not Python: {error.msg} in line {error.lineno}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise OptionError(f"unreadable Python: {error or 'it is nested too deeply'}") from None


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the text's escapes and literals
        return ast.parse(text)


def without_magics(text: str) -> str:
    """Return the text with a line of Python for each command of IPython, so that line numbers
    stay."""
    lines: list[str] = []
    code, goes_on = _OpenCode(), False
    for line in text.split("\n"):
        plain = "" if goes_on else line if code.is_open else _without_command(line)
        if plain == line:
            code.take(line)
        goes_on = plain != line and line.endswith("\\")
        lines.append(plain)
    return "\n".join(lines)


def _without_command(line: str) -> str:
    """Return a line in which a command may stand, as Python."""
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    timed = _TIMED.match(code)
    if timed:
        return indent + code[timed.end() :]
    if _COMMAND.fullmatch(code):
        return f"{indent}pass"
    assigned = _ASSIGNED.fullmatch(code)
    return f"{indent}{assigned[1]} ipython()" if assigned else line


class _OpenCode:
    """Tells whether a statement goes on, in which a line that begins with `%` is no command."""

    def __init__(self) -> None:
        self._depth, self._quotes, self._is_continued = 0, "", False

    @property
    def is_open(self) -> bool:
        return bool(self._depth or self._quotes or self._is_continued)

    def take(self, line: str) -> None:
        """Go on with a line."""
        self._is_continued = line.endswith("\\")
        place = 0
        while place < len(line):
            if self._quotes:
                end = line.find(self._quotes, place)
                if end < 0:
                    return
                self._quotes, place = "", end + 3
                continue
            match = _TOKENS.search(line, place)
            if match is None:
                return
            place = match.end()
            if match[0] in ('"""', "'''"):
                self._quotes = match[0]
            elif match[0] in "[({":
                self._depth += 1
            elif match[0] in "])}":
                self._depth = max(0, self._depth - 1)

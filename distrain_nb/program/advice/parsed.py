"""What a program's parser gives for options that are not passed: their defaults."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from distrain_nb.program.python.scopes import bound_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PARSES = ("parse_args", "parse_known_args")
# What an option without a default of its own gives, by its action.
_UNSET: Mapping[object, object] = {
    **dict.fromkeys(("store", "append", "count"), None), "store_true": False, "store_false": True,
}  # fmt: skip


def defaults(tree: ast.Module, arguments: Sequence[str]) -> dict[str, object]:
    """Return the values of `args.NAME`, by that text, of options that are constants unless they are
    passed, as none in `arguments` is. Nothing of a parser that gets its defaults otherwise."""
    nodes = [*ast.walk(tree)]
    called = [node for node in nodes if isinstance(node, ast.Call)]
    if any(_method(call) in ("set_defaults", "setattr") for call in called):
        return {}
    stored = {n.attr for n in nodes if isinstance(n, ast.Attribute) and _is_set(n)}
    options = {name: value for call in called for name, value in _option(call, arguments)}
    return {
        f"{namespace}.{name}": value
        for namespace in _namespaces(nodes)
        for name, value in options.items()
        if name not in stored
    }


def _namespaces(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the names that only stand for what a parser makes of the program's own arguments."""
    times = Counter(bound_by(n, nested=False) for n in nodes if not isinstance(n, ast.arg))
    for node in nodes:
        if isinstance(node, ast.Assign) and _parses_own(node.value):
            target = node.targets[0]
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            if isinstance(first, ast.Name) and times[first.id] == 1:
                yield first.id


def _parses_own(value: ast.expr) -> bool:
    """Return whether it is what a parser makes of `sys.argv`."""
    is_call = isinstance(value, ast.Call) and not (value.args or value.keywords)
    return is_call and _method(value) in _PARSES


def _option(call: ast.Call, arguments: Sequence[str]) -> Iterator[tuple[str, object]]:
    """Yield the name and the default of what `add_argument` adds, if that is an option with a
    constant one which isn't passed."""
    words = [a.value for a in call.args if isinstance(a, ast.Constant)]
    strings = [word for word in words if isinstance(word, str) and word.startswith("-")]
    if _method(call) != "add_argument" or not strings or len(strings) < len(call.args):
        return
    constants = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    named = {keyword.arg for keyword in call.keywords}
    unknown = {"default", "action", "dest", None} & named - constants.keys()
    action = constants.get("action", "store")
    if unknown or action not in _UNSET or _is_passed(strings, arguments):
        return
    long = next((string for string in strings if string.startswith("--")), strings[0])
    name = constants.get("dest", long.lstrip("-").replace("-", "_"))
    yield str(name), constants.get("default", _UNSET[action])


def _is_passed(strings: Sequence[str], arguments: Sequence[str]) -> bool:
    """Return whether one of an option's strings may be among the arguments, also shortened."""
    passed = [word.partition("=")[0] for word in arguments if word.startswith("-")]
    return any(
        string.startswith(word) or (not string.startswith("--") and word.startswith(string))
        for string in strings
        for word in passed
    )


def _method(call: ast.expr) -> str:
    function = getattr(call, "func", None)
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _is_set(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, (ast.Store, ast.Del))

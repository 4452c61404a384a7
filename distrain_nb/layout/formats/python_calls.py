"""Calls in a text: those that change what they are given, and all others by their arguments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.errors import OptionError
from distrain_nb.layout.formats.python_names import MISSING, MOST_PARTS, Call, Function, Unread
from distrain_nb.layout.formats.python_values import Expressions, is_plain, stars

if TYPE_CHECKING:
    from distrain_nb.types import Unknown

_HARMLESS = ("print", "display", "pprint", "len", "str", "dict", "list", "sorted", "isinstance")
_CONVERSIONS: dict[str, type[str | int | float]] = {"str": str, "int": int, "float": float}


class Calls(Expressions):
    """Expressions with calls."""

    def _of_call(self, node: ast.Call) -> object:
        func = node.func
        owner = self._value(func.value) if isinstance(func, ast.Attribute) else None
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if not isinstance(func, (ast.Attribute, ast.Name)):
            self._value(func)
        call = Call(name, node.lineno, [], {}, self._blocks, owner)
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                self._value(argument.value)
                call.args.append(Unread())
            else:
                call.args.append(self._value(argument))
        for keyword in node.keywords:
            value = self._value(keyword.value)
            if keyword.arg is not None:
                call.values[keyword.arg] = value
            elif isinstance(value, dict):
                call.values |= {str(key): entry for key, entry in value.items()}
            else:
                call.values[stars(keyword.value)] = Unread()
        call.unnamed = [ast.unparse(argument) for argument in node.args if node.keywords]
        result = self._builtin(call, func)
        return call if result is MISSING else result

    def _builtin(self, call: Call, func: ast.expr) -> object:
        """Evaluate a call of a builtin, or of a function of the text; MISSING for others."""
        if isinstance(func, ast.Name):
            function = self.names.get(call.name)
            if isinstance(function, Function):
                self._mark(list(function.changes))
            if call.name in ("dict", *_CONVERSIONS) and function is None:
                return self._converted(call)
            if call.name[:1].islower() and call.name not in _HARMLESS:
                for value in (*call.args, *call.values.values()):
                    self._taint(value)
        elif isinstance(call.owner, dict):
            return self._of_mapping(call.owner, call)
        elif isinstance(call.owner, list):
            return self._of_sequence(call.owner, call)
        elif isinstance(call.owner, Call):
            self._step(call.owner, call)
        self._take(call)
        return MISSING

    def _converted(self, call: Call) -> object:
        if any(isinstance(argument, (Unread, Call)) for argument in call.args):
            return Unread()
        if call.name == "dict":
            return {**dict(*call.args), **call.values}
        if len(call.args) == 1 and isinstance(call.args[0], (str, int, float)):
            return _CONVERSIONS[call.name](call.args[0])
        return Unread()

    def _of_mapping(self, owner: dict[Unknown, object], call: Call) -> object:
        first = call.args[0] if call.args else None
        if call.name == "update" and (first is None or isinstance(first, dict)):
            self._update(owner, {**(first or {}), **call.values})
        elif call.name == "setdefault" and is_plain(first):
            if first not in owner:
                self._write(owner, first, (*call.args, None)[1])
            return owner[first]
        elif call.name == "pop" and is_plain(first):
            value = owner.get(first, (*call.args, Unread())[1])
            self._write(owner, first, MISSING)
            return value
        elif call.name == "get" and is_plain(first):
            return owner.get(first, (*call.args, None)[1])
        elif call.name == "copy":
            return dict(owner)
        elif call.name not in ("keys", "values", "items"):
            self._taint(owner)
        return Unread()

    def _of_sequence(self, owner: list[object], call: Call) -> object:
        first = call.args[0] if call.args else None
        if call.name == "append" and call.args:
            self._write(owner, None, first)
        elif call.name == "extend" and isinstance(first, (list, tuple)):
            if len(owner) + len(first) > MOST_PARTS:
                raise OptionError(f"line {call.line} stands for more than {MOST_PARTS:,} values")
            for member in list(first):
                self._write(owner, None, member)
        elif call.name == "copy":
            return list(owner)
        elif call.name not in ("index", "count"):
            self._taint(owner)
        return Unread()

"""Tab completes the options of `%%distrain`, the verbs of `%distrain`, and the names of runs."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

_MAGIC = re.compile(r"^\s*(%{1,2})distrain\s+(?P<before>.*?)(?P<word>\S*)$")


def add_matcher(shell: InteractiveShell) -> None:
    """Have the shell's completer ask us about lines that start with our magic."""
    from IPython.core.completer import context_matcher

    completer = getattr(shell, "Completer", None)
    if completer is not None and not any(_is_ours(m) for m in completer.custom_matchers):
        completer.custom_matchers.append(context_matcher()(match))


def match(context: CompletionContext) -> SimpleMatcherResult:
    """What the word at the cursor can become."""
    from IPython.core.completer import SimpleCompletion

    found = _MAGIC.match(context.line_with_cursor[: context.cursor_position])
    words = _words(found) if found else []
    fitting = [w for w in words if found and w.startswith(found["word"])]
    completions = [SimpleCompletion(text=word, type="option") for word in fitting]
    return {"completions": completions, "suppress": bool(completions)}


def _is_ours(matcher: Any) -> bool:
    return getattr(matcher, "__module__", "") == __name__


def _words(found: re.Match[str]) -> Iterable[str]:
    from distrain_nb.backends.plugins import all_backends
    from distrain_nb.magics.command_line import cell_parser, line_parser

    before = found["before"].split()
    if found[1] == "%%":
        return _options(cell_parser(all_backends()), before)
    verbs = _verbs(line_parser())
    if not before:
        return verbs
    if before[0] not in verbs:
        return []
    return [*_options(verbs[before[0]], before), *_runs()]


def _options(parser: argparse.ArgumentParser, before: list[str]) -> Iterable[str]:
    """The values of the option that has just been written, or the options there are."""
    for action in parser._actions:
        if before and before[-1] in action.option_strings and "|" in str(action.metavar):
            return str(action.metavar).split("|")
    return [flag for action in parser._actions for flag in action.option_strings]


def _verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _runs() -> list[str]:
    from distrain_nb.run import Store

    return [*sorted({record.name for record in Store().all()}), "last"]

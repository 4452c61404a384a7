"""Tab completes what stands in a line of ours: options, verbs, and what each of them takes.

What a completion is for stands where the front end shows its type: beside it, in JupyterLab and in
the terminal.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.completer import CompletionContext, SimpleMatcherResult
    from IPython.core.interactiveshell import InteractiveShell

    from distrain_nb.magics.command_line import Parser
    from distrain_nb.magics.values import Completion

_MAGIC = r"^\s*(?P<signs>%{1,2})distrain\s+(?P<before>.*?)(?P<word>\S*)$"
_BREAKS = r"([-/|])"
_FIRST = (
    "-n", "--workers", "--result", "--on", "--layout", "--param", "--name", "--no-wait",
    "--rehearse", "--dry-run",
)  # fmt: skip


def add_matcher(shell: InteractiveShell) -> None:
    """Have the shell's completer ask us about lines that start with our magic.

    Completers before IPython 8.6 have no matchers that say what they offer; there Tab is as ever.
    """
    with suppress(ImportError):
        from IPython.core.completer import context_matcher

        completer = getattr(shell, "Completer", None)
        if completer is not None and not any(_is_ours(m) for m in completer.custom_matchers):
            completer.custom_matchers.append(context_matcher()(match))


def match(context: CompletionContext) -> SimpleMatcherResult:
    """Complete the word at the cursor."""
    from IPython.core.completer import SimpleCompletion

    magic = re.match(_MAGIC, _written(context))
    if magic is None:
        return _of_session(context)
    fragment, offered = _offered(magic, context.full_text)
    completions = [
        SimpleCompletion(text=completion.text, type=without_breaks(completion.about or "value"))
        for completion in offered
        if completion.text.startswith(fragment)
    ]
    return {
        "completions": completions,
        "suppress": bool(completions),
        "ordered": True,
        "matched_fragment": fragment,
    }


def _of_session(context: CompletionContext) -> SimpleMatcherResult:
    """Offer names of a session's ranks in the code of a cell for them, beside all others."""
    from IPython.core.completer import SimpleCompletion

    word = re.search(r"(?<![\w.])[^\W\d]\w*$", context.line_with_cursor[: context.cursor_position])
    is_in_session = re.match(r"%%distrain\s.*--in[ =]", context.full_text)
    if word is None or not is_in_session:
        return {"completions": [], "suppress": False}
    from distrain_nb.magics.values import names_of_ranks

    completions = [
        SimpleCompletion(text=name.text, type=without_breaks(name.about))
        for name in names_of_ranks(context.full_text)
        if name.text.startswith(word[0])
    ]
    return {"completions": completions, "suppress": False, "matched_fragment": word[0]}


def without_breaks(about: str) -> str:
    """Replace spaces and signs at which JupyterLab would break the line of a completion."""
    return re.sub(_BREAKS, "\\1\N{WORD JOINER}", about.replace(" ", "\N{NO-BREAK SPACE}"))


def _written(context: CompletionContext) -> str:
    """Return the magic's line up to the cursor, with those that continue it."""
    from distrain_nb.repairs import head_lines, join_lines

    *above, line = context.full_text.split("\n")[: context.cursor_line + 1]
    text = "\n".join([*above, line[: context.cursor_position]])
    in_head = text.startswith("%%") and head_lines(text) > len(above)
    return join_lines(text).replace("\n", " ") if in_head else join_lines(text).rpartition("\n")[2]


def _is_ours(matcher: Any) -> bool:
    return getattr(matcher, "__module__", "") == __name__


def _offered(magic: re.Match[str], cell: str) -> tuple[str, Iterable[Completion]]:
    """Return the part of the word that is completed, and what it can become."""
    from distrain_nb.magics.command_line import image_parser
    from distrain_nb.magics.verbs import line_parser

    before, word = magic["before"].split(), magic["word"]
    if magic["signs"] == "%%":
        is_image = before[:1] == ["image"]
        return _of_options(image_parser() if is_image else _cell_parser(before), before, word, cell)
    parser = line_parser()
    if not before:
        return word, [*_verbs(parser), *_options(parser)]
    if before[0] == "run":
        return _of_script(before[1:], word, cell)
    verb = parser.verbs.get(before[0])
    if verb is None:
        return _of_options(parser, before, word, cell)
    fragment, options = _of_options(verb, before, word, cell)
    return fragment, [*_operands(verb, before, word), *options]


def _of_script(before: list[str], word: str, cell: str) -> tuple[str, Iterable[Completion]]:
    """Return options up to the script, and the script's file; what stands behind it is the
    script's."""
    from distrain_nb.magics.command_line import options_before
    from distrain_nb.magics.values import scripts

    parser = _cell_parser(before)
    if options_before(before) != before:
        return word, []
    action = parser._option_string_actions.get(before[-1]) if before else None
    takes_value = action is not None and action.nargs != 0
    fragment, options = _of_options(parser, before, word, cell)
    return fragment, [*(() if takes_value else scripts(word)), *options]


def _cell_parser(before: list[str]) -> argparse.ArgumentParser:
    """Return a parser with the options of the place that the line names, or of all."""
    from distrain_nb.backends.plugins import all_backends
    from distrain_nb.magics.command_line import cell_parser
    from distrain_nb.magics.values import place_in

    backends, place = all_backends(), place_in(before)
    return cell_parser([backend for backend in backends if backend.name == place] or backends)


def _of_options(
    parser: argparse.ArgumentParser, before: list[str], word: str, cell: str
) -> tuple[str, Iterable[Completion]]:
    """Return the values of the option that has just been written, or the options there are."""
    from distrain_nb.magics.values import values

    name, equals, begun = word.partition("=")
    if equals and name.startswith("--"):
        before, word = [*before, name], begun
    action = parser._option_string_actions.get(before[-1]) if before else None
    if action is not None and action.nargs != 0 and not word.startswith("-"):
        return values(action, before, word, cell)
    return word, _options(parser)


def _options(parser: argparse.ArgumentParser) -> list[Completion]:
    """Return the options of a parser; those that people use come first."""
    from distrain_nb.magics.values import Completion

    completions = [
        Completion(name, (action.help or "").replace("%%", "%"))
        for action in parser._actions
        for name in action.option_strings
    ]
    rank = {name: number for number, name in enumerate(_FIRST)}
    return sorted(completions, key=lambda option: rank.get(option.text, len(_FIRST)))


def _verbs(parser: Parser) -> Iterator[Completion]:
    from distrain_nb.magics.values import Completion

    for name, verb in parser.verbs.items():
        if name:
            yield Completion(name, verb.description or "")


def _operands(verb: argparse.ArgumentParser, before: list[str], word: str) -> list[Completion]:
    """Complete a verb's operand: a run, a layout, a setting."""
    from distrain_nb.magics import values

    takes = [action for action in verb._actions if not action.option_strings]
    for action in takes if not word.startswith("-") else ():
        has_operand = action.nargs == "?" and len(before) > 1
        offer = values.OPERANDS.get(action.dest)
        return [] if has_operand or offer is None else list(offer())
    return []

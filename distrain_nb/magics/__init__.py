"""`%%distrain` and `%distrain`: parse, call `api`, display."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class

from distrain_nb.errors import OptionError
from distrain_nb.magics.observing import start_observing
from distrain_nb.magics.problems import show_problems
from distrain_nb.magics.warming import after_cell, before_cell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

RELOAD = (
    "distrain_nb: reload this page to load the widgets that were just "
    "installed. Until then runs are shown without widgets, but still update."
)
_HEAD = r"%%distrain\b"


@magics_class
class DistrainMagics(Magics):  # type: ignore[misc]
    """The two forms of the magic; what they do is imported on first use."""

    @line_cell_magic  # type: ignore[untyped-decorator]
    def distrain(self, line: str, cell: str | None = None) -> Any:
        """Run a cell as a distributed job, or look after runs: `%%distrain --help`."""
        with show_problems(line, cell, self.shell):
            return _done(line, cell, self.shell)


def _done(line: str, cell: str | None, shell: InteractiveShell) -> Any:
    if cell is None:
        words = _words(line)
        if words[:1] in (["doctor"], ["run"]):
            _say_what_begins(words)
        from distrain_nb.magics.lines import run_line

        return run_line(words, shell)
    words = _words(_options(f"%%distrain {line}\n{cell}"))
    _say_what_begins(words)
    if words[:1] != ["image"]:
        before_cell(words, cell)
    from distrain_nb.magics.cell import run_cell, source_of

    if words[:1] == ["image"]:
        from distrain_nb.magics.image import run_image

        return run_image(words[1:], source_of(line, cell, shell))
    return run_cell(words, line, cell, shell)


def _say_what_begins(words: list[str]) -> None:
    """Say it on a page before the imports of a first run, study or check, which take seconds."""
    if words[:1] == ["doctor"]:
        module, text = "health", "Checking this machine…"
    elif any(word.partition("=")[0] in ("--tune", "--study") for word in words):
        module, text = "magics.studies", "Preparing the study: its code is read and checked…"
    else:
        module, text = "magics.cell", "Preparing the run: its code is read and checked…"
    if f"distrain_nb.{module}" not in sys.modules:
        from distrain_nb.ui.outputs import show_until_next

        show_until_next(text)


def load(shell: InteractiveShell) -> None:
    """Register the magics, what completes their options, and what warms up for the first run."""
    from distrain_nb.magics.completion import add_matcher

    shell.register_magics(DistrainMagics)
    add_matcher(shell)
    transforms = shell.input_transformers_cleanup
    for transform in (with_body, at_the_top):
        if transform not in transforms:
            transforms.append(transform)
    shell.events.register("post_run_cell", after_cell)
    start_observing(shell)
    shell.events.register("post_run_cell", _may_be_loaded_again)
    if hasattr(shell, "kernel"):
        _say_what_is_new()


def _say_what_is_new() -> None:
    from distrain_nb.ui.frontend import page_lacks_widgets

    if page_lacks_widgets():
        print(RELOAD)


def _may_be_loaded_again(_: object = None) -> None:
    """Make IPython forget the extension, so that a second `%load_ext` says nothing."""
    from IPython import get_ipython

    get_ipython().extension_manager.loaded.discard("distrain_nb")


def with_body(lines: list[str]) -> list[str]:
    """Return a cell that is nothing but our line with an empty one below it: without that, IPython
    takes it for a mistake, and `%%distrain --help` is none."""
    if lines and re.match(_HEAD, lines[0]) and not "".join(lines[1:]).strip():
        return [lines[0], "\n"]
    return lines


def at_the_top(lines: list[str]) -> list[str]:
    """Return the lines as they are. Raises SyntaxError where a comment or code stands above our
    line, which IPython says as `%%distrain` not found."""
    place = next((n for n, line in enumerate(lines) if re.match(_HEAD, line)), 0)
    above = "".join(lines[:place])
    try:
        code = ast.parse(above).body
    except SyntaxError:  # another magic, or a text that only looks like one of ours
        return lines
    if above.strip():
        way = "the code above it into a cell of its own" if code else "the comment below it"
        words = lines[place].strip()
        raise SyntaxError(f"{words} has to be the first line of its cell: move {way}")
    return lines


def _options(cell: str) -> str:
    """Return the options in a cell's head. Raises OptionError if it ends in a line of code."""
    from distrain_nb.repairs import code_in_head, head_options

    if stray := code_in_head(cell):
        code, fix = stray
        message = (
            f"{code!r} isn't an option: the line above ends in a backslash, so it would be read "
            "as one"
        )
        raise OptionError(message, where=code, fixes=(fix,))
    return head_options(cell)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise OptionError(f"can't read the options {line!r}: {error}") from None

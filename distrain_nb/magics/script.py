"""`%distrain run`: a script is submitted as a cell is, without the names of the notebook."""

from __future__ import annotations

from distrain_nb import api
from distrain_nb.backends import plugins
from distrain_nb.magics.cell import submit
from distrain_nb.magics.command_line import HELP, options_before, script_options, script_parser
from distrain_nb.magics.help import show
from distrain_nb.magics.help_page import page_of


def run_script(words: list[str]) -> None:
    """Raise OptionError, and what `api.start` and, for a run that is waited for, `Run.wait`
    raise."""
    if any(word in HELP for word in options_before(words)):
        show(page_of(script_parser(plugins.all_backends())))
        return
    target, is_module, options = script_options(words)
    submit(api.script(target, is_module=is_module), options)

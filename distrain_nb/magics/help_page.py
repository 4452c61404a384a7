"""A page of help: what parsers take, as text and in tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape

from distrain_nb.magics.command_line import Parser
from distrain_nb.saved.markup import OWN_KEYS

# Its class three times: JupyterLab's own rules for tables would win over a plain one.
_OURS = ".dn-help.dn-help.dn-help table"
_TWO_LINES_BELOW = 1250
STYLE = (
    f"<style>{_OURS} {{ margin: 0 0 8px; }}"
    f"{_OURS} :is(td, th) {{ text-align: left; vertical-align: top; font-weight: normal; }}"
    f"{_OURS} code {{ background: none; padding: 0; white-space: pre; }}"
    # By the output's width: a side panel leaves a part of the window.
    ".dn-help { container: dn-help / inline-size; overflow-x: auto; }"
    f"@container dn-help (max-width: {_TWO_LINES_BELOW}px) {{"
    f" {_OURS} :is(td, th) {{ display: block; padding: 2px 0; }}"
    f" {_OURS} td {{ padding-left: 2em; }}"
    f" {_OURS} code {{ white-space: pre-wrap; overflow-wrap: anywhere; }} }}</style>"
)


@dataclass(frozen=True)
class Section:
    """Lines or options, each with what it does; `about` says what all this is for."""

    title: str
    rows: tuple[tuple[str, str], ...]
    about: str = ""

    def html(self) -> str:
        rows = "".join(
            f"<tr><th scope='row'><code>{escape(term)}</code></th><td>{escape(right)}</td></tr>"
            for term, right in self.rows
        )
        about = f"<p>{escape(self.about)}</p>" if self.about else ""
        title = self.title[:1].upper() + self.title[1:]
        return f"{about}<p><b>{escape(title)}</b></p><table>{rows}</table>"


@dataclass(frozen=True)
class HelpPage:
    """The text, and the same in sections, with a sentence below them."""

    text: str
    sections: tuple[Section, ...]
    more: str = ""

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        body = "".join(section.html() for section in self.sections)
        more = f"<p>{escape(self.more)}</p>" if self.more else ""
        region = (
            f"class='dn-help' role='region' aria-label='help' tabindex='0' {OWN_KEYS}"  # scrolls
        )
        return f"{STYLE}<div {region}>{body}{more}</div>"


def page_of(*parsers: Parser) -> HelpPage:
    """Return everything that these parsers take."""
    text = "\n".join(parser.format_help() for parser in parsers)
    return HelpPage(text, tuple(section for parser in parsers for section in _sections(parser)))


def options_part(
    parser: Parser, title: str, is_part: Callable[[argparse.Action], bool]
) -> HelpPage:
    """Return some of a parser's options."""
    actions = [action for action in parser._actions if is_part(action)]
    formatter = parser._get_formatter()
    formatter.start_section(title)
    formatter.add_arguments(actions)
    formatter.end_section()
    return HelpPage(formatter.format_help(), (Section(title, tuple(_rows(parser, actions))),))


def _sections(parser: Parser) -> Iterator[Section]:
    """Yield each group of options; the first says what the parser is for."""
    about = f"{parser.prog}: {parser.description}"
    for group in parser._action_groups:
        actions = [
            action for action in group._group_actions if action.dest != "help" or action.nargs
        ]
        if actions:
            yield Section(group.title or "", tuple(_rows(parser, actions)), about)
            about = ""


def _rows(parser: Parser, actions: Iterable[argparse.Action]) -> Iterator[tuple[str, str]]:
    formatter = parser._get_formatter()
    for action in actions:
        of_verbs = list(formatter._iter_indented_subactions(action))
        if of_verbs:
            yield from _rows(parser, of_verbs)
        else:
            yield formatter._format_action_invocation(action), _help(formatter, action)


def _help(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    return formatter._expand_help(action) if action.help else ""

"""`--help`: the options that people use, by example; by topic; and all, from the declarations."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from distrain_nb.backends import plugins
from distrain_nb.backends.options import declared
from distrain_nb.errors import OptionError, did_you_mean
from distrain_nb.layout import Layout
from distrain_nb.magics.command_line import (
    HELP,
    STUDY_OPTIONS,
    Parser,
    cell_parser,
    image_parser,
)
from distrain_nb.magics.verbs import line_parser
from distrain_nb.saved.markup import OWN_KEYS

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend

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


EVERYTHING = "all"
_EXAMPLES = (
    ("-n 2", "two ranks on this machine"),
    ("-n 2 --result model,history", "return two variables of rank 0"),
    ("--workers 2", "a cluster of three replicas on this machine"),
    ("--layout five", "use the layout saved as five; see %distrain form"),
    ("-n 2 --param lr=0.01 --name slow", "set a variable of the notebook to another value"),
    ("-n 2 --no-wait", "keep working while the run continues"),
    ("-n 2 --dry-run", "show what would be submitted, without submitting it"),
    ("-n 2 -- --epochs 3", "pass arguments to the program"),
)
_RUNS = (
    ("%distrain run -n 2 train.py --epochs 3", "a script, with its arguments"),
    ("%distrain", "list the runs"),
    ("%distrain logs RUN", "print the log of a run; also attach, cancel, resume, result, delete"),
)
_HEAD = "%%distrain on top of a cell runs it as a distributed training job."


def show_help(words: list[str]) -> bool:
    """Show what `--help` asks for, if it does. Raises OptionError for a topic that isn't there."""
    options = words[: words.index("--")] if "--" in words else words
    for number, word in enumerate(options):
        name, _, topic = word.partition("=")
        if name in HELP:
            after = "".join(options[number + 1 : number + 2])
            show(help_page(topic or ("" if after.startswith("-") else after)))
            return True
    return False


def show(page: HelpPage) -> None:
    """Show a page below the running cell, or in the terminal."""
    from IPython.display import display

    display(page)


def help_page(topic: str = "") -> HelpPage:
    """Return the short help, or that of a topic. Raises OptionError naming the topics."""
    if not topic:
        return _short(plugins.all_backends())
    pages = _topics()
    verb = line_parser().verbs.get(topic)
    if topic not in pages and verb is not None:
        return page_of(verb)
    if topic not in pages:
        hint = did_you_mean(topic, pages, ".")
        raise OptionError(f"no help on {topic!r}{hint} There are {', '.join(pages)}")
    return pages[topic]()


def topics() -> list[str]:
    """List the topics that `--help` takes."""
    return list(_topics())


def _topics() -> dict[str, Callable[[], HelpPage]]:
    backends = plugins.all_backends()
    return {
        EVERYTHING: lambda: page_of(cell_parser(backends), line_parser()),
        "machines": lambda: _group(cell_parser(backends), "where to run, and on which machines"),
        "job": lambda: _group(cell_parser(()), "the job"),
        "study": lambda: _group(cell_parser(()), STUDY_OPTIONS),
        "images": lambda: _images(backends),
        "runs": lambda: page_of(line_parser()),
        **{
            backend.name: partial(_of_backend, backend)
            for backend in backends
            if declared(backend.options)
        },
    }


def _short(backends: Iterable[AnyBackend]) -> HelpPage:
    """Return lines to start from, those of the backends too."""
    lines = [(f"%%distrain {options}", about) for options, about in _EXAMPLES]
    lines += [
        (f"%%distrain {Layout.of(backend.name, **backend.example)}", f"on {backend.title}")
        for backend in backends
        if backend.example
    ]
    lines.append(("%%distrain --on … --rehearse", "rehearse the same job on this machine"))
    lines += _RUNS
    width = max(len(line) for line, _ in lines[: -len(_RUNS)])
    shown = [f"  {line:{width}}  {about}" for line, about in lines]
    more = f"More: --help {EVERYTHING}, or --help TOPIC: {', '.join(topics()[1:])}"
    text = "\n".join([f"{_HEAD}\n", *shown, "", more])
    return HelpPage(text, (Section(_HEAD, tuple(lines)),), more)


def _group(parser: Parser, title: str) -> HelpPage:
    """Return one group of a parser's options."""
    groups = [group for group in parser._action_groups if group.title == title]
    members = {id(action) for group in groups for action in group._group_actions}
    return options_part(parser, title, lambda action: id(action) in members)


def _of_backend(backend: AnyBackend) -> HelpPage:
    """Return the options that jobs there have besides those of any job."""
    return _group(cell_parser([backend]), f"jobs on {backend.title}")


def _images(backends: Sequence[AnyBackend]) -> HelpPage:
    """Return options of jobs that are about their image, and the magic that builds one by
    itself."""
    names = {
        name
        for backend in backends
        for name, option in declared(backend.options).items()
        if option.topic == "images"
    }
    of_jobs = options_part(
        cell_parser(backends), "the image of a job", lambda action: action.dest in names
    )
    builds = page_of(image_parser())
    return HelpPage(f"{of_jobs.text}\n{builds.text}", of_jobs.sections + builds.sections)

"""`--help`: the options that people use, by example; by topic; and all, from the declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
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
from distrain_nb.magics.help_page import HelpPage, Section, options_part, page_of
from distrain_nb.magics.verbs import line_parser

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend


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

"""`--help`: the options that people use, by example; by topic; and all, from the declarations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from distrain_nb.backends import plugins
from distrain_nb.backends.options import declared
from distrain_nb.errors import OptionError, did_you_mean
from distrain_nb.layout import Layout
from distrain_nb.magics.command_line import HELP, cell_parser, image_parser, line_parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from distrain_nb.backends.base import AnyBackend

EVERYTHING = "all"
_EXAMPLES = (
    ("-n 2", "two ranks on this machine"),
    ("-n 2 --result model,history", "… and two names of rank 0 come back"),
    ("--workers 2", "a cluster of three replicas on this machine"),
    ("--layout five", "machines that were saved as five: %distrain form"),
    ("-n 2 --param lr=0.01 --name slow", "another value for a name of the notebook"),
    ("-n 2 --no-wait", "go on working while it runs"),
    ("-n 2 --dry-run", "show what would be submitted, and submit nothing"),
    ("-n 2 -- --epochs 3", "the program's own arguments"),
)
_RUNS = (
    ("%distrain run -n 2 train.py --epochs 3", "a script, with its arguments"),
    ("%distrain", "the runs"),
    ("%distrain logs RUN", "one of them; also attach, cancel, result, delete"),
)
_HEAD = "%%distrain on top of a cell runs it as a distributed training job.\n"


def show_help(words: list[str]) -> bool:
    """Print what `--help` asks for, if it does. Raises OptionError for a topic that isn't there."""
    options = words[: words.index("--")] if "--" in words else words
    for number, word in enumerate(options):
        name, _, topic = word.partition("=")
        if name in HELP:
            after = "".join(options[number + 1 : number + 2])
            print(help_text(topic or ("" if after.startswith("-") else after)))
            return True
    return False


def help_text(topic: str = "") -> str:
    """The short help, or that of a topic. Raises OptionError naming the topics."""
    if not topic:
        return _short(plugins.all_backends())
    known = _topics()
    verb = line_parser().verbs.get(topic)
    if topic not in known and verb is not None:
        return verb.format_help()
    if topic not in known:
        hint = did_you_mean(topic, known, ".")
        raise OptionError(f"no help on {topic!r}{hint} There are {', '.join(known)}")
    return known[topic]()


def topics() -> list[str]:
    """What `--help` takes."""
    return list(_topics())


def _topics() -> dict[str, Callable[[], str]]:
    backends = plugins.all_backends()
    return {
        EVERYTHING: lambda: "\n".join(
            [cell_parser(backends).format_help(), line_parser().format_help()]
        ),
        "machines": lambda: _section(cell_parser(backends), "where, and on which machines"),
        "job": lambda: _section(cell_parser(()), "the job"),
        "images": lambda: _images(backends),
        "runs": lambda: line_parser().format_help(),
        **{each.name: partial(_of_backend, each) for each in backends if declared(each.options)},
    }


def _short(backends: Iterable[AnyBackend]) -> str:
    """Lines to start from, those of the backends too."""
    lines = [(f"%%distrain {options}", what) for options, what in _EXAMPLES]
    lines += [
        (f"%%distrain {Layout.of(each.name, **each.example)}", f"on {each.title}")
        for each in backends
        if each.example
    ]
    lines.append(("%%distrain --on … --rehearse", "rehearse the same job on this machine"))
    width = max(len(line) for line, _ in lines)
    shown = [f"  {line:{width}}  {what}" for line, what in (*lines, *_RUNS)]
    more = f"More: --help {EVERYTHING}, or --help TOPIC, which is one of {', '.join(topics()[1:])}"
    return "\n".join([_HEAD, *shown, "", more])


def _section(parser: argparse.ArgumentParser, title: str) -> str:
    """One group of a parser's options."""
    formatter = parser._get_formatter()
    for group in (group for group in parser._action_groups if group.title == title):
        formatter.start_section(group.title)
        formatter.add_arguments(group._group_actions)
        formatter.end_section()
    return formatter.format_help()


def _of_backend(backend: AnyBackend) -> str:
    """The options that jobs there have besides those of any job."""
    return _section(cell_parser([backend]), f"jobs on {backend.title}")


def _images(backends: Sequence[AnyBackend]) -> str:
    """Options of jobs that are about their image, and the magic that builds one by itself."""
    own = {
        name
        for each in backends
        for name, option in declared(each.options).items()
        if option.topic == "images"
    }
    parser = cell_parser(backends)
    formatter = parser._get_formatter()
    formatter.start_section("the image of a job")
    formatter.add_arguments([each for each in parser._actions if each.dest in own])
    formatter.end_section()
    return f"{formatter.format_help()}\n{image_parser().format_help()}"

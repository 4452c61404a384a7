"""The options of `%%distrain` as command-line parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from distrain_nb.backends import plugins
from distrain_nb.backends.options import declared
from distrain_nb.errors import OptionError, closest
from distrain_nb.layout.option import Option
from distrain_nb.layout.options import OPTIONS, SPOT
from distrain_nb.options import JobOptions
from distrain_nb.options import words as split_words
from distrain_nb.repairs import write_option
from distrain_nb.tuning.options import PARTS, STUDY

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend

HELP = ("-h", "--help")
STUDY_OPTIONS = "a study: many runs with different parameters"
BUILDERS = ("append", "docker", "cloudbuild")
SCRIPTS = (".py", ".ipynb")

_NO_VALUE = re.compile(r"argument (?:-\w/)?(--?[\w-]+).*: expected (?:one|at least one) argument")
_UNREAD = re.compile(r"argument (--?[\w-]+): invalid (int|float) value: '(.*)'$")
_KINDS = {"int": "an integer", "float": "a number"}
# What other launchers and studies call these options.
RANKS, REPLICAS = "-n N", "--workers N, which counts the replicas besides the primary"
ELSEWHERE = {
    "-np": RANKS,
    "--np": RANKS,
    "--nproc": RANKS,
    "--nproc-per-node": RANKS,
    "--num-processes": RANKS,
    "--nnodes": REPLICAS,
    "--num-machines": REPLICAS,
    "--minimize": "--goal min:METRIC",
    "--minimise": "--goal min:METRIC",
    "--maximize": "--goal max:METRIC",
    "--maximise": "--goal max:METRIC",
    "--direction": "--goal min:METRIC or --goal max:METRIC",
    "--n-trials": "--trials N",
}
_LIKE = 0.7  # how much of a name has to be that of an option, beside the dashes


class HelpAsked(Exception):
    """`--help` was asked for, of this parser."""

    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        super().__init__(parser.prog)


class Parser(argparse.ArgumentParser):
    """Raises OptionError where argparse would end the process."""

    def read(self, words: list[str]) -> argparse.Namespace:
        """Return the options. Raises OptionError, which names the option that seems to be meant."""
        self.refuse_elsewhere(words)
        namespace, unknown = self.parse_known_args(words)
        if unknown:
            self.verbs.get(getattr(namespace, "verb", None), self).refuse(unknown[0])
        return namespace

    @property
    def verbs(self) -> dict[str | None, Parser]:
        """The parsers of the verbs, by name."""
        parts = [
            action for action in self._actions if isinstance(action, argparse._SubParsersAction)
        ]
        return {name: parser for part in parts for name, parser in part.choices.items()}

    def refuse_elsewhere(self, words: Iterable[str]) -> None:
        """Raise OptionError for what other launchers call an option. It comes before all else:
        argparse would read `-np 2` as `-n p`."""
        for name in map(_flag, words):
            if name in ELSEWHERE:
                self.error(f"no option {name}; here it is {ELSEWHERE[name]}")

    def refuse(self, word: str) -> NoReturn:
        """Raise OptionError for a word that is none of these options."""
        if not word.startswith("-"):
            self.error(f"unexpected {word!r}: options are written --NAME VALUE")
        names_of_options = {name.lstrip("-"): name for name in self._option_string_actions}
        close = closest(_flag(word).lstrip("-"), names_of_options, _LIKE)
        meant = self._option_string_actions.get(names_of_options.get(close, ""))
        names = meant.option_strings if meant else []
        hint = f"; did you mean {' or '.join(names)}?" if meant else ""
        self.error(f"no option {word}{hint}", meant=(word.partition("=")[0], *names))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value with the names that are like it, which argparse's message doesn't have."""
        if action.choices is not None and value not in action.choices:
            close = closest(value, action.choices)
            hint = f"; did you mean {close}?" if close else "."
            kind = "verb" if action.dest == "verb" else action.option_strings[0]
            message = f"no {kind} {value!r}{hint} There are {', '.join(action.choices)}"
            self.error(message, meant=(value, close) if close else (value,))

    def error(self, message: str, meant: tuple[str, ...] = ()) -> NoReturn:
        """Raise OptionError. `meant` is a word of the line, and those that may be meant instead."""
        if (lacks := _NO_VALUE.match(message)) and lacks[1] in self._option_string_actions:
            name, action = lacks[1], self._option_string_actions[lacks[1]]
            form = getattr(action, "grammar", "") or action.metavar
            message, meant = f"no value for {name}: expected {name} {form or 'VALUE'}", (name,)
        if unread := _UNREAD.match(message):
            name, kind, value = unread.groups()
            message, meant = f"invalid {name} {value!r}: expected {_KINDS[kind]}", (value,)
        fixes = tuple(write_option(meant[0], option) for option in meant[1:])
        where = meant[0] if meant else ""
        raise OptionError(f"{message}\nsee {self.prog} --help", where=where, fixes=fixes)

    def print_help(self, file: object = None) -> NoReturn:  # noqa: ARG002
        raise HelpAsked(self)


def _flag(word: str) -> str:
    return word.partition("=")[0].replace("_", "-")


def cell_parser(backends: Sequence[AnyBackend]) -> Parser:
    """Return the parser of `%%distrain` for any job, and the options of the backends."""
    parser = Parser(
        prog="%%distrain",
        usage="%%%%distrain [OPTIONS]",
        description="Run this cell as a distributed training job. Without --on, on this machine.",
        add_help=False,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    where = parser.add_argument_group("where to run, and on which machines")
    names = "|".join(backend.name for backend in backends)
    for option in OPTIONS:
        add_option(where, option, names if option.field == "on" else "")
    add_option(where, SPOT)
    job = parser.add_argument_group("the job")
    job.add_argument(
        *HELP, nargs="?", metavar="TOPIC", help="show a short help, or the help on a topic"
    )
    common = declared(JobOptions)
    for option in common.values():
        add_option(job, option)
    study = parser.add_argument_group(STUDY_OPTIONS)
    for option in (STUDY, *PARTS.values()):
        add_option(study, option)
    for title, options in by_backends(backends).items():
        group = parser.add_argument_group(f"jobs on {title}")
        for option in options:
            if option.field not in common:
                add_option(group, option)
    return parser


def by_backends(backends: Iterable[AnyBackend]) -> dict[str, list[Option]]:
    """Return options by the titles of the backends that have them, as the first of those declares
    it."""
    having: dict[str, list[tuple[str, Option]]] = {}
    for backend in backends:
        for name, option in declared(backend.options).items():
            having.setdefault(name, []).append((backend.title, option))
    by_titles: dict[str, list[Option]] = {}
    for pairs in having.values():
        titles = " and ".join(sorted(title for title, _ in pairs))
        titles = titles.replace(" and ", ", ", len(pairs) - 2)
        by_titles.setdefault(titles, []).append(pairs[0][1])
    return by_titles


def backends_of(words: list[str]) -> list[AnyBackend]:
    """Return the backends whose options are on the line, the chosen one first; none are loaded for
    a line that has only the options of any job."""
    common = cell_parser(())._option_string_actions
    flags = [_flag(word) for word in words if word.startswith("-")]
    if all(flag in common for flag in flags):
        return []
    chosen = {after for word, after in pairwise(words) if word == "--on"}
    chosen |= {word.removeprefix("--on=") for word in words}
    return sorted(plugins.all_backends(), key=lambda backend: backend.name not in chosen)


def cell_options(words: list[str]) -> dict[str, Any]:
    """Return the options by name. Raises OptionError.

    What stands behind `--` are arguments of the program.
    """
    end = words.index("--") if "--" in words else len(words)
    options: dict[str, Any] = vars(cell_parser(backends_of(words[:end])).read(words[:end]))
    return _with_arguments(options, words[end + 1 :])


def _with_arguments(options: dict[str, Any], more: Sequence[str]) -> dict[str, Any]:
    args = [word for text in options.pop("args", ()) for word in split_words(text)]
    args += more
    return {**options, "args": args} if args else options


class ScriptLine(NamedTuple):
    """The line of `%distrain run`: a file, or a module after `-m`, and the options by name."""

    target: str
    is_module: bool
    options: dict[str, Any]


def script_parser(backends: Sequence[AnyBackend]) -> Parser:
    """Return the parser of `%distrain run`: a cell's options, and what runs."""
    parser = cell_parser(backends)
    parser.prog = "%distrain run"
    parser.usage = "%%distrain run [OPTIONS] FILE [ARGUMENT ...]"
    parser.description = "Run a script as a distributed training job."
    parser.add_argument(
        "-m", dest="is_module", action="store_true", help="run a module instead of a file"
    )
    parser.add_argument("target", nargs="?", metavar="FILE|MODULE", help="script, such as train.py")
    parser.add_argument(
        "behind", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="arguments of the script"
    )
    return parser


def options_before(words: list[str]) -> list[str]:
    """Return the words of `%distrain run` that stand before the script, and so are not the
    script's."""
    return list(takewhile(lambda word: word != "-m" and not word.endswith(SCRIPTS), words))


def script_options(words: list[str]) -> ScriptLine:
    """Return the script and its options; what stands behind it are its arguments, with or without a
    `--` between. Raises OptionError."""
    ours = options_before(words)
    parser = script_parser(backends_of(ours))
    parser.refuse_elsewhere(ours)
    namespace, unknown = parser.parse_known_args(words)
    if unknown:
        parser.refuse(unknown[0])
    options = vars(namespace)
    target, behind = options.pop("target", ""), options.pop("behind", [])
    if not target:
        parser.error("no script: write its file behind the options, as in -n 2 train.py --lr 0.1")
    arguments = behind[1:] if behind[:1] == ["--"] else behind
    is_module = options.pop("is_module", False)
    return ScriptLine(target, is_module, _with_arguments(options, arguments))


def image_parser() -> Parser:
    """Return the parser of `%%distrain image`."""
    parser = Parser(
        prog="%%distrain image",
        description="Build a container image of this cell, push it and show what is in it.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--base", required=True, metavar="IMAGE", help="image to build on")
    add("--target", required=True, metavar="IMAGE", help="name under which to push the image")
    add(
        "--builder",
        default="append",
        choices=BUILDERS,
        help="how to build (default: append, which needs no Docker)",
    )
    python = "Python version of the base, if the base doesn't name it"
    add("--python", metavar="VERSION", help=python)
    add(
        "--platform",
        default="linux/amd64",
        metavar="OS/ARCH",
        help="platform to use from a multi-platform base (default: linux/amd64)",
    )
    inside = "read the base's layers for its Python and packages"
    add("--look-inside", action="store_true", help=inside)
    several = partial(add, action="append", default=[])
    several("--run", metavar="COMMAND", help="command to run in the build, with --builder docker")
    several("--allow-secret", metavar="NAME", help="let this value pass the secret check")
    several("--include", metavar="PATH", help="file or folder to add")
    several("--require", metavar="PACKAGE", help="package to add")
    add("--project", default="", metavar="NAME", help="project of Cloud Build")
    add("--bucket", default="", metavar="NAME", help="bucket of Cloud Build")
    add("--dockerfile", action="store_true", help="print a Dockerfile and build nothing")
    return parser


def image_options(words: list[str]) -> argparse.Namespace:
    """Return the options of an image. Raises OptionError, and HelpAsked."""
    return image_parser().read(words)


def add_option(group: argparse._ArgumentGroup, option: Option, form: str = "") -> None:
    """Add an option to a parser's group; `form` is how its value is written there, if not as it
    was declared."""
    kind: dict[str, Any]
    if option.default is None and not option.form:
        kind = {"action": argparse.BooleanOptionalAction}
    elif option.bare is not None:
        kind = {"nargs": "?", "const": option.bare, "metavar": option.form}
    elif not option.form:
        kind = {"action": "store_true"}
    else:
        action = "append" if option.several else "store"
        kind = {"metavar": form or option.form, "action": action}
    added = group.add_argument(*option.names, dest=option.field, help=option.help, **kind)
    vars(added)["grammar"] = option.grammar  # for the error where the value is missing

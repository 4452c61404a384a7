"""The verbs of `%distrain` as command-line parsers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from distrain_nb.backends.plugins import find
from distrain_nb.layout.byte_sizes import size_in_bytes
from distrain_nb.layout.case import TYPICAL_STEP_S
from distrain_nb.magics.command_line import HELP, Parser, backends_of, cell_parser

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend

Verb: TypeAlias = Callable[[str, str], argparse.ArgumentParser]  # by its name, and what it does

RUN = "number or name of a run, or last"
RUN_VERBS = {
    "show": "show state, log and charts of a run",
    "logs": "print the log of a run",
    "stacks": "show where each rank of a run on this machine is, with its stacks",
    "debug": "ask at the prompt of a rank, at the line where it is",
    "attach": "follow a run, study or cloud job below this cell (default: what you started last)",
    "cancel": "stop a run",
    "resume": "start a run again from its checkpoints",
    "result": "return the results of a run",
    "delete": "delete a run and its files",
    "note": "write a note on a run, or print it",
    "tag": "add tags to a run, or print them",
    "export": "write a run into one HTML file that needs no server",
}
STUDY_FORMS = ("vertex-json", "vertex-yaml", "sagemaker-json", "ai-platform-yaml", "yaml")


def line_parser() -> Parser:
    """Return the parser of `%distrain`."""
    parser = Parser(
        prog="%distrain",
        description="Manage runs. Without a verb, list them.",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")

    def verb(name: str, about: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=about, description=about, allow_abbrev=False)

    for add in (_add_runs, _add_study, _add_tools):
        add(verb)
    return parser


def _add_runs(verb: Verb) -> None:
    runs = verb("runs", "list the runs")
    filed = "only runs of this experiment, with their parameters and metrics"
    runs.add_argument("--experiment", metavar="NAME", help=filed)
    verb("session", "start, stop or list sessions: ranks that stay between cells")
    names = verb("vars", "list the names that the ranks of a session have")
    names.add_argument(
        "--in", dest="session", default="", metavar="NAME", help="session (default: the only one)"
    )
    verb("run", "run a script with its arguments, and with a cell's options")
    of_runs = {name: verb(name, about) for name, about in RUN_VERBS.items()}
    for run in of_runs.values():
        run.add_argument("run", nargs="?", default="last", metavar="RUN", help=RUN)
    logs, result = of_runs["logs"], of_runs["result"]
    logs.add_argument("--rank", type=int, metavar="N", help="only the lines of this rank")
    logs.add_argument(
        "--follow", action="store_true", help="print new lines until the run has ended"
    )
    rank = "rank to stop (default: one at a prompt, else 0)"
    of_runs["debug"].add_argument("--rank", type=int, metavar="N", help=rank)
    carrier = "log of the background process that submits the job and follows it"
    logs.add_argument("--carrier", action="store_true", help=carrier)
    result.add_argument(
        "--into", action="store_true", help="assign the results to variables of the notebook"
    )
    trust = "also unpickle arbitrary objects; this can run code stored in the file"
    result.add_argument("--trust", action="store_true", help=trust)
    text = "the new note; '' removes it"
    of_runs["note"].add_argument("text", nargs="*", metavar="TEXT", help=text)
    of_runs["tag"].add_argument("tags", nargs="*", metavar="TAG", help="tags to add")
    removed = "tag to remove, or all"
    of_runs["tag"].add_argument(
        "--remove", action="append", default=[], metavar="TAG", help=removed
    )
    of_runs["export"].add_argument(
        "file", nargs="?", metavar="FILE.html", help="file to write (default: NAME-NUMBER.html)"
    )
    compare = verb("compare", "compare runs: their metrics in one chart, and their differences")
    several = f"{RUN}; or the name of a study or an experiment, for its runs"
    compare.add_argument("runs", nargs="+", metavar="RUN", help=several)


def _add_study(verb: Verb) -> None:
    tune = verb("tune", "show a study, add trials to it, or stop it")
    tune.add_argument(
        "study", nargs="?", metavar="STUDY", help="number or name of a study, or last"
    )
    tune.add_argument("--trials", metavar="+N", help="add this many trials")
    stop = "stop this trial, whose value so far counts; without a number, the study"
    copied = "print the study in another format"
    tune.add_argument("--as", dest="form", metavar="FORM", choices=STUDY_FORMS, help=copied)
    tune.add_argument("--stop", nargs="?", const="study", metavar="TRIAL", help=stop)
    removed = "delete an ended study, its files and its trials' runs"
    tune.add_argument("--delete", action="store_true", help=removed)


def _add_tools(verb: Verb) -> None:
    """Add the verbs that concern no run."""
    _add_packing(verb("shard", "pack small files into tar shards, which train faster from buckets"))
    catalog = verb("catalog", "look up machines, accelerators, regions and containers")
    catalog.add_argument("words", nargs="*", metavar="FILTER", help="words that a row must contain")
    form = verb("form", "build a pool layout in a form that checks every field as you type")
    opened = "saved layout to open, or options of a cell"
    form.add_argument("layout", nargs="?", default="", metavar="NAME|OPTIONS", help=opened)
    _add_case(verb("advise", "recommend a distribution for a job, and check its cell"))
    verb("doctor", "check this machine: what jobs need, what is missing and how to install it")
    clean = verb("clean", "list caches and old runs that can be deleted, and delete them")
    clean.add_argument("--yes", action="store_true", help="delete them (default: only list)")
    days = "include runs that ended more than this many days ago"
    clean.add_argument("--older-than", type=float, metavar="DAYS", help=days)
    config = verb("config", "show the settings, or change some")
    config.add_argument(
        "settings",
        nargs="*",
        metavar="NAME=VALUE",
        help="new value of a setting; NAME= resets it; webhook and smtp_password are asked for",
    )


def _add_packing(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `shard`."""
    _add_source_and_target(parser)
    add = parser.add_argument
    add("--rehearse", action="store_true", help="use the rehearsals' buckets on this machine")
    help_text = "pack in a job there, with any options of %%%%distrain"
    add("--on", default="", metavar="BACKEND", help=help_text)


def _add_source_and_target(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "source",
        metavar="SOURCE",
        help="folder, gs:// or s3:// address, or a .txt that lists files",
    )
    add("target", metavar="TARGET", help="folder, or gs:// or s3:// address")
    add("--size", default="", metavar="SIZE", help="largest size of a shard (default: 256MB)")
    add(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="shuffle the samples with this seed (default: keep their order)",
    )


def packing_parser(backends: Sequence[AnyBackend]) -> Parser:
    """Return the parser of `%distrain shard --on`: a cell's options, and what is packed how."""
    parser = cell_parser(backends)
    parser.prog = "%distrain shard"
    parser.usage = "%%distrain shard [OPTIONS] SOURCE TARGET"
    _add_source_and_target(parser)
    return parser


def packing_options(words: list[str]) -> dict[str, Any] | None:
    """Return the options of `%distrain shard` and of the job that packs; None where this machine
    does. Raises OptionError."""
    where = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    where.add_argument("--on", nargs="?")
    asks = any(word in HELP for word in words)
    on = where.parse_known_args(words)[0].on
    if asks or not on or find(on).here:
        return None
    return vars(packing_parser(backends_of(words)).read(words))


def _add_case(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `advise`."""
    add = parser.add_argument
    run = "run whose measurements replace a missing --step and --model-size"
    add("run", nargs="?", metavar="RUN", help=run)
    size = "size of the weights, such as 100MB"
    add("--model-size", dest="model_bytes", metavar="SIZE", type=size_in_bytes, help=size)
    add("--gpus-per-instance", metavar="N", type=int, help="GPUs of a machine; 0 for CPUs")
    add("--instances", metavar="N", type=int, help="number of machines")
    add(
        "--network",
        dest="network_gbps",
        metavar="GBIT",
        type=float,
        help="bandwidth of a machine, in Gbit/s",
    )
    add(
        "--workers",
        metavar="POOL",
        help="pool that replaces the three above, such as 2*ml.p3.2xlarge",
    )
    add("--framework", metavar="NAME[-VERSION]", help="framework, such as tensorflow-1.13")
    step = f"seconds per step without communication (default: {TYPICAL_STEP_S:g})"
    add("--step", dest="step_s", metavar="SECONDS", type=float, help=step)
    add(
        "--script",
        metavar="FILE|N",
        help="file or cell to check (default: the last %%%%distrain cell)",
    )


def line_options(words: list[str]) -> argparse.Namespace:
    """Return the verb and its options. Raises OptionError, and HelpAsked."""
    if words[:1] == ["form"] and words[1:] and not any(word in HELP for word in words):
        return argparse.Namespace(verb="form", layout=shlex.join(words[1:]))  # or a cell's options
    return line_parser().read(words)

"""The verbs of `%distrain` as command-line parsers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from distrain_nb.layout.case import TYPICAL_STEP_S, size_in_bytes
from distrain_nb.magics.command_line import HELP, Parser, backends_of, cell_parser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distrain_nb.backends.base import AnyBackend

Verb: TypeAlias = Callable[[str, str], argparse.ArgumentParser]  # by its name, and what it does

RUN = "its number or name, or last"
RUN_VERBS = {
    "show": "state, log and charts of a run",
    "logs": "print the log of a run",
    "attach": "show a run below this cell, live, or a study by its tuning job's name in the cloud",
    "cancel": "stop a run",
    "result": "what a run brought back",
    "delete": "forget a run and remove its files",
}
STUDY_FORMS = ("vertex-json", "vertex-yaml", "ai-platform-yaml", "sagemaker-json", "yaml")


def line_parser() -> Parser:
    """Return the parser of `%distrain`."""
    parser = Parser(
        prog="%distrain",
        description="Look after runs. Without a verb: list them.",
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
    filed = "only those filed under it, with their parameters and metrics"
    runs.add_argument("--experiment", metavar="NAME", help=filed)
    verb("run", "run a script with its arguments, and with a cell's options")
    of_runs = {name: verb(name, about) for name, about in RUN_VERBS.items()}
    for run in of_runs.values():
        run.add_argument("run", nargs="?", default="last", metavar="RUN", help=RUN)
    logs, result = of_runs["logs"], of_runs["result"]
    logs.add_argument("--rank", type=int, metavar="N", help="only this process's lines")
    logs.add_argument("--follow", action="store_true", help="go on until the run has ended")
    carrier = "what the process has done and met that carries the run to its cloud"
    logs.add_argument("--carrier", action="store_true", help=carrier)
    result.add_argument("--into", action="store_true", help="define the names in the notebook")
    trust = "read what is more than plain data, which runs code that its file names"
    result.add_argument("--trust", action="store_true", help=trust)
    compare = verb("compare", "several runs in one chart, and what differs between them")
    several = f"{RUN}; or the name of a study or an experiment, for its runs"
    compare.add_argument("runs", nargs="+", metavar="RUN", help=several)


def _add_study(verb: Verb) -> None:
    tune = verb("tune", "show a study, ask for more of its trials, or stop some")
    tune.add_argument("study", nargs="?", metavar="STUDY", help="its number or name, or last")
    tune.add_argument("--trials", metavar="+N", help="ask for that many trials more")
    stop = "stop that trial, whose value so far counts; without a number, the whole study"
    copied = "print it in another form, to copy"
    tune.add_argument("--as", dest="form", metavar="FORM", choices=STUDY_FORMS, help=copied)
    tune.add_argument("--stop", nargs="?", const="study", metavar="TRIAL", help=stop)
    removed = "forget it, once it has ended, and remove its files and its trials' runs"
    tune.add_argument("--delete", action="store_true", help=removed)


def _add_tools(verb: Verb) -> None:
    """Add the verbs that concern no run."""
    _add_packing(verb("shard", "pack small files into tar shards, which train faster from buckets"))
    catalog = verb("catalog", "look up machines, accelerators, regions and containers")
    catalog.add_argument("words", nargs="*", metavar="FILTER", help="words that a row must have")
    form = verb("form", "build a pool layout by clicking; every field is checked as you type")
    form.add_argument("layout", nargs="?", default="", metavar="NAME", help="a saved layout")
    _add_case(verb("advise", "which distribution suits a job, and what its cell lacks for it"))
    verb("doctor", "where this is, what jobs need that it lacks, and how to get it")
    clean = verb("clean", "say what can be freed where runs are kept, and free it")
    clean.add_argument("--yes", action="store_true", help="free it; without it nothing is removed")
    days = "runs too that ended more than so many days ago"
    clean.add_argument("--older-than", type=float, metavar="DAYS", help=days)
    config = verb("config", "show the settings, or change some")
    config.add_argument(
        "settings", nargs="*", metavar="NAME=VALUE", help="without a VALUE: no longer set"
    )


def _add_packing(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `shard`."""
    _add_source_and_target(parser)
    add = parser.add_argument
    add("--rehearse", action="store_true", help="buckets are those of rehearsals on this machine")
    help_text = "pack there, by a job; more options are those of %%%%distrain, such as --primary"
    add("--on", default="", metavar="BACKEND", help=help_text)


def _add_source_and_target(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", metavar="SOURCE", help="a folder, gs:// or s3://, or a .txt that lists files")
    add("target", metavar="TARGET", help="a folder, gs:// or s3://")
    add("--size", default="", metavar="SIZE", help="of a shard at most; 256MB unless you say")
    add("--shuffle", type=int, metavar="SEED", help="mix the samples; else they are in order")


def packing_parser(backends: Sequence[AnyBackend]) -> Parser:
    """Return the parser of `%distrain shard --on`: a cell's options, and what is packed how."""
    parser = cell_parser(backends)
    parser.prog = "%distrain shard"
    _add_source_and_target(parser)
    return parser


def packing_options(words: list[str]) -> dict[str, Any] | None:
    """Return the options of `%distrain shard` and of the job that packs; None where this machine
    does. Raises OptionError."""
    where = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    where.add_argument("--on", nargs="?")
    asks = any(word in HELP for word in words)
    if asks or where.parse_known_args(words)[0].on in (None, "", "local"):
        return None
    return vars(packing_parser(backends_of(words)).read(words))


def _add_case(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `advise`."""
    add = parser.add_argument
    size = "of the weights, such as 100MB"
    add("--model-size", dest="model_bytes", metavar="SIZE", type=size_in_bytes, help=size)
    add("--gpus-per-instance", metavar="N", type=int, help="0 for CPUs")
    add("--instances", metavar="N", type=int, help="how many machines")
    add("--network", dest="network_gbps", metavar="GBIT", type=float, help="Gbit/s of a machine")
    add("--workers", metavar="POOL", help="in place of the three above, such as 2*ml.p3.2xlarge")
    add("--framework", metavar="NAME[-VERSION]", help="such as tensorflow-1.13")
    step = f"a step without the exchange; {TYPICAL_STEP_S:g} unless you say"
    add("--step", dest="step_s", metavar="SECONDS", type=float, help=step)
    add("--script", metavar="FILE|N", help="a file, or cell N; otherwise the last %%%%distrain")


def line_options(words: list[str]) -> argparse.Namespace:
    """Return the verb and its options. Raises OptionError, and HelpAsked."""
    return line_parser().read(words)

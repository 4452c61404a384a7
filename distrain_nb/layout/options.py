"""The options that a layout is written with, in the magic, in Python and in YAML.

An option as it is declared once: of a layout, a job, a backend or a study.

The parser, `--help`, completion, the form, YAML, Python's keywords and the settings of
`%distrain config` are made from its declaration.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from distrain_nb.errors import OptionError, closest, did_you_mean, shown
from distrain_nb.findings import Finding, Fix
from distrain_nb.layout.files import check_length
from distrain_nb.layout.place import PLACES
from distrain_nb.layout.pool import POOL_FORM, Pool
from distrain_nb.layout.traffic import sized_reducers
from distrain_nb.repairs import join_lines, with_option, write_in_option

if TYPE_CHECKING:
    from distrain_nb.layout.choices import Choice
    from distrain_nb.layout.layout import Layout

    # What an option can take beside a layout.
    Choices: TypeAlias = Callable[[Layout], Iterable[Choice]]

Kind: TypeAlias = Literal["text", "number", "combo"]  # a combo is a text with a list of what fits


@dataclass(frozen=True)
class Option:
    """An option: its name in Python, how its value is written, and what it is for in a line.

    An option without a `form` is a switch; `grammar` is the whole of a form that `--help`
    abbreviates. `short` is another name of it in the magic. `read` makes
    a value of a text and raises ValueError or OptionError, `write` the text again; `several` says
    that it may be given more than once. `words` are all texts that it takes, if these are known,
    and `choices` gives what it can take beside a layout. `part` is its field in what it is read
    into, where that has another name.

    `label` names a field of the form for it, `hint` is what that shows while it is empty, and an
    `extra` field is shown only when asked for, or when it holds something.

    Of an option that a dataclass declares, `split` makes texts of what was written; the function
    `option` of `backends.options` describes the others.
    """

    field: str
    form: str
    help: str
    default: object = None
    grammar: str = ""
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str
    words: tuple[str, ...] = ()
    choices: Choices | None = None
    several: bool = False
    short: str = ""
    part: str = ""
    label: str = ""
    kind: Kind = "text"
    hint: str = ""
    extra: bool = False
    split: Callable[[str], tuple[str, ...]] | None = None
    setting: str = ""
    like: tuple[str, ...] = ()
    elsewhere: str = ""
    bare: str | None = None
    topic: str = ""
    request: tuple[str, ...] = ()
    written_as: str = ""

    @property
    def name(self) -> str:
        """As written in the magic, `--ranks-per-replica`."""
        return self.written_as or flag(self.field)

    @property
    def names(self) -> tuple[str, ...]:
        """All that it can be written as, the shortest first."""
        return (self.short, self.name) if self.short else (self.name,)

    @property
    def expected(self) -> str:
        """What an error asks for."""
        return "an integer" if self.form == "N" else self.grammar or self.form

    @property
    def written(self) -> str:
        """With its form, `--service-account EMAIL`."""
        return f"{self.name} {self.form}".strip()


def flag(field: str) -> str:
    """Return the option of a name in Python as it is written in the magic."""
    return "--" + field.replace("_", "-")


LAUNCHERS = ("auto", "torchrun", "mpi", "tensorflow", "parameter-server", "python")

MOST_RETRIES = 1000

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_PLAIN = re.compile(r"[\w@%+=:,./*?-]+")
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_DURATION = re.compile(r"\d{1,9}|(?:\d{1,9}[dhms])+")
_WIDTH = 79
_LONGEST_LINE = 20_000  # what splitting a line costs grows with the square of a word


def seconds(text: str) -> int:
    """Return seconds of `7d`, `1h30m`, `90s` or a bare number. Raises ValueError."""
    if not _DURATION.fullmatch(text):
        raise ValueError(text)
    return sum(int(n) * _UNITS[unit or "s"] for n, unit in re.findall(r"(\d+)([dhms]?)", text))


def duration(value: int) -> str:
    """Return the shortest text that `seconds` reads back."""
    for unit, size in _UNITS.items():
        if value and value % size == 0:
            return f"{value // size}{unit}"
    return str(value)


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    return read


def _place(text: str) -> str:
    """Accept any name: which backends are installed isn't known here."""
    if not _NAME.fullmatch(text):
        raise ValueError(text)
    return text


def _count(text: str) -> int:
    if not 0 <= int(text) <= MOST_RETRIES:
        raise OptionError(f"{text} is not between 0 and {MOST_RETRIES}")
    return int(text)


def _causes(text: str) -> str:
    """Accept what may end an attempt, separated by commas."""
    from distrain_nb.worker.supervisor.retries import read_causes

    try:
        return ",".join(sorted(read_causes(text)))
    except ValueError as error:
        raise OptionError(
            f"{str(error)!r} is no cause: use an exit status from 1 to 255, a signal such as "
            "SIGTERM, or signals, preemption, lost or time-limit"
        ) from None


def _pool(field: str, about: str) -> Option:
    return Option(field, "POOL", about, grammar=POOL_FORM, read=Pool.parse)


def _duration(field: str, about: str, label: str, hint: str) -> Option:
    return Option(
        field, "DURATION", about, grammar="a duration such as 2h, 1h30m, 7d, or seconds",
        read=seconds, write=duration, label=label, hint=hint, extra=True,
    )  # fmt: skip


OPTIONS: tuple[Option, ...] = (
    Option("on", "|".join(PLACES), "where the job runs", read=_place, words=PLACES),
    _pool("primary", "machine of the primary replica, such as n1-standard-8+2*T4"),
    _pool("workers", "pool of workers, such as 4*n1-standard-8+2*T4"),
    _pool("servers", "pool of parameter servers"),
    _pool("reducers", "pool that sums gradients; auto sizes it"),
    _pool("evaluators", "pool of evaluators"),
    Option(
        "region", "REGION", "region of the cloud, such as us-central1",
        label="Region", kind="combo", hint="any",
    ),
    Option(
        "framework", "NAME[-VERSION]", "framework of the container, such as pytorch-2.4",
        label="Framework", kind="combo", hint="not chosen",
    ),
    Option(
        "image", "URI", "image of the training container",
        label="Container image", kind="combo", hint="auto",
    ),
    Option(
        "launcher", "|".join(LAUNCHERS), "program that starts the ranks", read=_one_of(LAUNCHERS),
        words=LAUNCHERS, label="Launcher", kind="combo",
    ),
    Option(
        "ranks_per_replica", "N", "number of ranks per replica", read=int, short="-n",
        label="Ranks per replica", kind="number", hint="auto",
    ),
    Option(
        "distribution", "NAME",
        "SageMaker distribution that --launcher doesn't cover, such as smddp",
        label="Distribution", kind="combo", hint="by launcher", extra=True,
    ),
    Option(
        "mpi_options", "TEXT", "more options for mpirun",
        label="MPI options", hint="such as -x NAME", extra=True,
    ),
    Option(
        "scheduling", "STANDARD|SPOT|FLEX_START", "how to obtain machines", read=str.upper,
        label="Scheduling", kind="combo", hint="STANDARD", extra=True,
    ),
    _duration("timeout", "time limit of the job, such as 2h", "May run for", "such as 2h"),
    _duration("max_wait", "longest time to wait for machines", "May wait for", "such as 1d"),
    _duration(
        "signal_before", "time before the limit at which the program is asked to save",
        "Save before the limit", "such as 60s",
    ),
    Option(
        "retries", "N", "most restarts of the run after a kill or a lost machine",
        read=_count, label="Retries", kind="number", hint="0", extra=True,
    ),
    Option(
        "retry_on", "CAUSE,…",
        "causes of a restart: exit statuses, signals, preemption, lost, time-limit",
        read=_causes, label="Retry on", hint="signals,preemption,lost,75", extra=True,
    ),
    Option(
        "checkpoint", "URI", "folder in a bucket for checkpoints",
        label="Checkpoints", hint="s3://…", extra=True,
    ),
    Option(
        "tier", "NAME", "scale tier of AI Platform", read=str.upper,
        label="Scale tier", kind="combo", hint="CUSTOM", extra=True,
    ),
)  # fmt: skip
SPOT = Option("spot", "", "short for --scheduling SPOT", default=False)

_BY_FIELD = {option.field: option for option in OPTIONS}
_BY_FLAG = {name: option for option in OPTIONS for name in reversed(option.names)}


def option_of(field: str) -> Option:
    """Return the option that a field of a layout is written with."""
    return _BY_FIELD[field]


def changed(layout: Layout, options: Mapping[str, object]) -> Layout:
    """Return the layout with options as a user writes them. None leaves a field as it is.

    Raises OptionError naming the option, the value and the allowed form.
    """
    values = {name.replace("-", "_"): value for name, value in options.items() if value is not None}
    if values.pop("spot", False):
        values.setdefault("scheduling", "SPOT")
    automatic = values.get("reducers") == "auto"
    if automatic:
        del values["reducers"]
    layout = replace(layout, **{name: _value(name, values[name]) for name in values})
    return replace(layout, reducers=sized_reducers(layout)) if automatic else layout


def split(text: str) -> dict[str, object]:
    """Return the options of a line by their fields. Raises OptionError for what is not a layout
    option."""
    options: dict[str, object] = {}
    words = iter(words_of(text))
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--spot":
            options["spot"] = True
            continue
        if name not in _BY_FLAG:
            hint = did_you_mean(name, _BY_FLAG, ".")
            raise OptionError(f"unknown layout option {shown(word)}{hint} There are {_names()}")
        option = _BY_FLAG[name]
        value = value if equals else next(words, "")
        if not value:
            raise OptionError(f"{option.name} has no value: expected {option.expected}")
        options[option.field] = value
    return options


def line(layout: Layout) -> str:
    """Return the layout as the magic's options; `split` and `changed` read it back."""
    return " ".join(printed(layout))


def heading(options: Iterable[str], script: Sequence[str] = ()) -> str:
    """Return the head of a cell with these options, one on each line where a single line is too
    long; the line that runs a script with its arguments, where there is one."""
    run = " ".join(map(quoted, script))
    words = ["%distrain run", *options, run] if run else ["%%distrain", *options]
    line = " ".join(words)
    return line if len(line) <= _WIDTH else " \\\n    ".join([" ".join(words[:2]), *words[2:]])


def texts(layout: Layout) -> dict[str, str]:
    """Write the fields that a layout sets, each as a user would. `on` is always there."""
    return {option.field: option.write(getattr(layout, option.field)) for option in _set(layout)}


def set_fields(layout: Layout) -> Iterator[str]:
    """Yield the names of the fields that a layout sets, with `on`."""
    return (option.field for option in _set(layout))


def _set(layout: Layout) -> Iterator[Option]:
    kind = type(layout)
    for option in OPTIONS:
        name = option.field
        if name == "on" or getattr(layout, name) != getattr(kind, name):
            yield option


def in_cell(finding: Finding, layout: Layout) -> Finding:
    """Return a finding about a layout whose repairs are of the text of the cell that it is written
    in."""
    before = texts(layout)
    fixes = tuple(
        Fix(fix.label, _retold(before, texts(fix.apply(layout)))) for fix in finding.fixes
    )
    return replace(finding, fixes=fixes)


def _retold(before: dict[str, str], after: dict[str, str]) -> Callable[[str], str]:
    """Return the repair of a cell's options that makes one layout of another."""

    def apply(text: str) -> str:
        for option in OPTIONS:
            value = after.get(option.field, "")
            if value != before.get(option.field, ""):
                written = f"{option.names[0]} {quoted(value)}" if value else ""
                text = with_option(text, list(option.names), written)
        return text

    return apply


def printed(layout: Layout) -> Iterator[str]:
    """Yield the options of a layout, each with its value."""
    for field, text in texts(layout).items():
        option = _BY_FIELD[field]
        if field == "scheduling" and text == "SPOT":
            yield "--spot"
        else:
            yield f"{option.names[0]} {quoted(text)}"


def quoted(text: str) -> str:
    """Return a word as the magic reads it."""
    return text if _PLAIN.fullmatch(text) else shlex.quote(text)


def words_of(text: str) -> list[str]:
    """Return a line's words, without their quotes. Raises OptionError for a quote that isn't
    closed, and for a line that is far longer than any."""
    check_length(text, "lines of options", _LONGEST_LINE)
    try:
        return shlex.split(join_lines(text))
    except ValueError as error:
        raise OptionError(f"invalid options {shown(text)}: {error}") from None


def _names() -> str:
    return ", ".join([*_BY_FLAG, "--spot"])


def _value(field: str, value: object) -> Any:
    option = _BY_FIELD.get(field)
    if option is None:
        hint = did_you_mean(field, _BY_FIELD, ".")
        fields = ", ".join(_BY_FIELD)
        raise OptionError(f"unknown layout option {shown(field)}{hint} There are {fields}, spot")
    if isinstance(value, Pool):
        return value
    try:
        return option.read(str(value).strip())
    except OptionError as error:
        raise OptionError(f"{option.name}: {error}") from None
    except ValueError:
        meant = closest(str(value), option.words)
        hint = f"; did you mean {meant}?" if meant else ""
        message = f"invalid {option.name} {shown(value)}: expected {option.expected}{hint}"
        fixes = (write_in_option(str(value), meant),) if meant else ()
        raise OptionError(message, where=str(value), fixes=fixes) from None

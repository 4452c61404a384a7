"""The options of a job: the layout's, and those that say what travels and what comes back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.backends.options import declared, option, read_options
from distrain_nb.backends.plugins import all_backends, find
from distrain_nb.config import Config
from distrain_nb.errors import OptionError, did_you_mean
from distrain_nb.layout import OPTIONS, Layout, load
from distrain_nb.layout.option import flag
from distrain_nb.layout.options import SPOT
from distrain_nb.layout.place import place_of
from distrain_nb.layout.text import changed
from distrain_nb.worker.facts.comparing import IGNORE_VARIABLE, STRICT_VARIABLE
from distrain_nb.worker.facts.deviations import CODES
from distrain_nb.worker.facts.proof import PROVE_VARIABLE
from distrain_nb.worker.rank.debugger import DEBUG_VARIABLE
from distrain_nb.worker.rank.displays import ALL, RANKS_VARIABLE
from distrain_nb.worker.rank.stacks import HANG_AFTER_VARIABLE, STOP_VARIABLE

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend

_DECIMAL = re.compile(r"\d+(\.\d+)?")
_STEPS = re.compile(r"[1-9]\d?")
_LAYOUT = {layout_option.field for layout_option in (*OPTIONS, SPOT)}


def words(text: str) -> tuple[str, ...]:
    """Return a command line's words, as a shell splits them. Raises OptionError for an open
    quote."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise OptionError(f"invalid --args {text!r}: {error}") from None


@dataclass(frozen=True)
class JobOptions:
    """Options of a job besides its layout. In the magic, lists may be given more than once."""

    layout: str = option("NAME|FILE", "saved layout to start from; other options change it", "")
    name: str = option("NAME", "name of the run", "")
    experiment: str = option("NAME", "experiment to which the run belongs", "")
    tag: tuple[str, ...] = option("NAME,…", "tags to find the run by", ())
    result: tuple[str, ...] = option("NAME,…", "variables of rank 0 to return to the notebook", ())
    param: tuple[str, ...] = option(
        "NAME=VALUE", "set a variable of the notebook to another value", ()
    )
    args: tuple[str, ...] = option(
        "TEXT", "arguments of the program (sys.argv[1:]); or write them after --", (), read=words
    )
    data: tuple[str, ...] = option("NAME=URI", "dataset; NAME becomes a variable with its path", ())
    include: tuple[str, ...] = option("PATH", "file or folder to send with the program", ())
    exclude: tuple[str, ...] = option("PATTERN", "files of a script's folder to leave out", ())
    require: tuple[str, ...] = option("NAME[==VERSION]", "package that the program needs", ())
    allow_secret: tuple[str, ...] = option("NAME", "let this value pass the secret check", ())
    hang_after: str = option(
        "N", "seconds of silence before a hang is checked for (default: 30; 0: never)", ""
    )
    stop_when_hung: bool = option("", "stop a run that hangs, as failed", False)
    ignore: tuple[str, ...] = option("CODE,…", "findings about the ranks to leave out", ())
    strict: bool = option("", "stop the run, as failed, at the first finding about ranks", False)
    prove: str = option(
        "N", "compare the first N steps with those of one rank on all batches, and end", ""
    )
    as_rank: str = option(
        "N|N/WORLD|all", "run the first steps as that rank alone, on this machine, and end", ""
    )
    steps: str = option("N", "steps that --as-rank makes (default: 2)", "")
    debug: bool = option("", "ask below the cell at the line where a rank fails", False)
    notify: str = option(
        "none|webhook,mail", "send a message when the run ends or hangs (default: setting)", ""
    )
    max_cost: str = option("AMOUNT", "stop the run when it has cost this much, such as 50USD", "")
    display: str = option(
        "first|all", "ranks whose figures, images and tables are shown (default: first)", ""
    )
    session: str = option("NAME", "session whose ranks run the cell", "", written_as="--in")
    rank: str = option("N,…", "ranks of the session that run the cell (default: all)", "")
    send: tuple[str, ...] = option(
        "NAME,…", "names to send to the session although its ranks have set them", ()
    )
    keep: tuple[str, ...] = option(
        "NAME,…", "names that the session's ranks keep although the notebook has set them", ()
    )
    wait: bool | None = option("", "wait in the cell until the run has ended", None)
    dry_run: bool = option("", "show what would be submitted, and submit nothing", False)
    export: str = option(
        "FORM", "with --dry-run: format to print, such as trainjob (for kubectl apply)", "",
        written_as="--as",
    )  # fmt: skip

    @property
    def results(self) -> tuple[str, ...]:
        """The names in `result`, each on its own."""
        return tuple(name.strip() for text in self.result for name in text.split(",") if name)

    @property
    def hang_variables(self) -> dict[str, str]:
        """Variables by which the worker knows when a run makes no progress. Raises OptionError."""
        if self.hang_after and not _DECIMAL.fullmatch(self.hang_after):
            raise OptionError(
                f"invalid --hang-after {self.hang_after!r}: expected seconds, such as 120; "
                "0 never looks"
            )
        stops = "1" if self.stop_when_hung else ""
        settings = {HANG_AFTER_VARIABLE: self.hang_after, STOP_VARIABLE: stops}
        return {name: text for name, text in settings.items() if text}

    @property
    def finding_variables(self) -> dict[str, str]:
        """Variables by which the worker knows what to leave out of findings about ranks, and
        whether one ends the run. Raises OptionError."""
        names = [name.strip() for text in self.ignore for name in text.split(",") if name.strip()]
        allowed = {*CODES, *(code.partition(".")[0] for code in CODES)}
        for name in names:
            if name not in allowed:
                hint = did_you_mean(name, allowed, ".")
                raise OptionError(
                    f"invalid --ignore {name!r}: expected a code, or the word before its dot{hint} "
                    f"Codes are {', '.join(sorted(CODES))}"
                )
        if self.prove and not _STEPS.fullmatch(self.prove):
            raise OptionError(f"invalid --prove {self.prove!r}: expected 1 to 99 steps, such as 4")
        if self.prove and self.session:
            raise OptionError("--prove has ranks of its own: leave out --in")
        self._check_as_rank()
        settings = {
            IGNORE_VARIABLE: ",".join(names),
            STRICT_VARIABLE: "1" if self.strict else "",
            PROVE_VARIABLE: self.prove,
        }
        return {name: text for name, text in settings.items() if text}

    def _check_as_rank(self) -> None:
        if self.steps and not self.as_rank:
            raise OptionError(f"--steps {self.steps} is for ranks that run alone: add --as-rank")
        if self.steps and not _STEPS.fullmatch(self.steps):
            raise OptionError(f"invalid --steps {self.steps!r}: expected 1 to 99 steps, such as 4")
        others = {"--in": self.session, "--prove": self.prove, "--as": self.export}
        for name in (name for name, text in others.items() if self.as_rank and text):
            raise OptionError(f"--as-rank runs ranks alone: leave out {name}", where=name)

    @property
    def debug_variables(self) -> dict[str, str]:
        """The variable by which a rank that fails knows that it is to ask."""
        return {DEBUG_VARIABLE: "1"} if self.debug else {}

    @property
    def display_variables(self) -> dict[str, str]:
        """The variable by which ranks know whose displays are shown. Raises OptionError."""
        if self.display not in ("", "first", ALL):
            raise OptionError(f"invalid --display {self.display!r}: expected first or all")
        return {RANKS_VARIABLE: ALL} if self.display == ALL else {}

    def values(self, place: Callable[[str, str], str]) -> dict[str, Any]:
        """Return the names that `param` and `data` define, with their values; `place` says what a
        name for data at a URI is where the job runs."""
        values = {name: _literal(text) for name, text in _pairs("param", self.param)}
        return values | self.places(place)

    def places(self, place: Callable[[str, str], str]) -> dict[str, str]:
        """Return where the job finds the data that `data` names, as `place` says."""
        return {name: place(name, uri) for name, uri in _pairs("data", self.data)}

    def delivered_names(self, brings: Callable[[str], bool]) -> frozenset[str]:
        """Return the names in `data` of what comes to the job without being read by its name."""
        return frozenset(name for name, uri in _pairs("data", self.data) if brings(uri))


class Chosen(NamedTuple):
    """A layout, the options of any job, and those of the backend that the layout is for."""

    layout: Layout
    job: JobOptions
    backend: AnyBackend
    backend_options: Any


def read(options: Mapping[str, Any], config: Config | None = None) -> Chosen:
    """Return options by name, in Python's spelling; what a backend finds in no option it takes from
    `config`. Raises OptionError naming option, value and form."""
    values = {name: value for name, value in options.items() if value is not None}
    common = declared(JobOptions).keys()
    job = read_options(
        JobOptions, {name: value for name, value in values.items() if name in common}
    )
    _check_name(job.name)
    _check_requirements(job.require)
    if job.tag:
        from distrain_nb.run.annotation import tags_in  # what runs need is not imported for others

        tags_in(job.tag)
    of_layout = {name: value for name, value in values.items() if name in _LAYOUT}
    layout = changed(load(job.layout) if job.layout else Layout(), of_layout)
    backend = _backend_of(layout)
    rest = {n: v for n, v in values.items() if n not in of_layout and n not in common}
    for name in (name for name in options if name not in {*_LAYOUT, *common}):
        if name not in declared(backend.options):
            raise _refused(name, backend)
    settings = config.of_backends if config else {}
    return Chosen(layout, job, backend, read_options(backend.options, rest, settings))


def _backend_of(layout: Layout) -> AnyBackend:
    """Return the one that takes the layout. Raises OptionError."""
    place = place_of(layout.on)
    if place and place.successor:
        raise place.successor.error(layout)
    return find(layout.on)


def _refused(name: str, backend: AnyBackend) -> OptionError:
    """Make the error for an option that a job there can't have: it is another backend's, or
    nobody's."""
    elsewhere = {
        backend.name: declared(backend.options)[name]
        for backend in all_backends()
        if name in declared(backend.options)
    }
    declarations = declared(backend.options)
    if not elsewhere:
        names = {*_LAYOUT, *declared(JobOptions), *declarations}
        hint = did_you_mean(name, names, ".")
        return OptionError(f"no option {name!r}{hint} There are {', '.join(sorted(names))}")
    instead = [
        declaration.written for declaration in declarations.values() if name in declaration.like
    ]
    instead = instead or list(
        filter(None, {declared_there.elsewhere for declared_there in elsewhere.values()})
    )
    hint = f"; here it is {' and '.join(instead)}" if instead else ""
    *others, last = (f"--on {place}" for place in elsewhere)
    places = " and ".join(filter(None, (", ".join(others), last)))
    return OptionError(f"{flag(name)} has no meaning on {backend.title}: it is for {places}{hint}")


def _check_name(name: str) -> None:
    """Refuse a name that would be taken for a run's number or for `last`."""
    if name.isdigit() or name == "last" or name != name.strip() or not name.isprintable():
        raise OptionError(
            f"invalid --name {name!r}: expected a printable name that is neither a number nor "
            f"'last', such as run-{name if name.isdecimal() else 'a'}"
        )


def _check_requirements(texts: Iterable[str]) -> None:
    """Refuse what pip would take for an option of its own, or for several requirements."""
    for text in texts:
        if text.lstrip().startswith("-") or not text.isprintable() or not text.strip():
            raise OptionError(
                f"invalid --require {text!r}: expected a package, such as numpy or numpy>=2,<3"
            )


def _pairs(option: str, texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(
                f"invalid --{option} {text!r}: expected NAME=VALUE, with NAME an identifier"
            )
        yield name, value


def _literal(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text

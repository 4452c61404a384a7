"""Everything that a cell needs from the notebook, and in turn what that needs."""

from __future__ import annotations

import builtins
import copy
import re
from collections import deque
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.observed import Observer
from distrain_nb.program.gathering import doubts
from distrain_nb.program.gathering.choices import Choices
from distrain_nb.program.gathering.module_state import (
    from_the_world,
    left_in_module,
    module_state,
    modules_in,
)
from distrain_nb.program.gathering.no_source import no_source
from distrain_nb.program.gathering.ranks import settle
from distrain_nb.program.gathering.refused import not_captured, of_prompt, undefined
from distrain_nb.program.gathering.remake import Remade, remake, remake_for
from distrain_nb.program.gathering.resolve import (
    MODULE_NAMES,
    Literal,
    Needed,
    NoSource,
    PendingName,
    SourceCode,
    Value,
    as_data,
    by_repeated,
    by_replay,
    by_statement,
    is_builtin,
)
from distrain_nb.program.gathering.state import caches_of, state_of, subclasses_of
from distrain_nb.program.gathering.unrepeated import identities, unreached, unrepeated
from distrain_nb.program.gathering.weights import weights_of
from distrain_nb.program.notebook.deleted import imports_again
from distrain_nb.program.notebook.reach import Dependence
from distrain_nb.program.notebook.seen_reads import SeenReads
from distrain_nb.program.notebook.world import World
from distrain_nb.program.progress import report
from distrain_nb.program.python.reads import SUBCLASSES
from distrain_nb.program.values.pickling import try_value
from distrain_nb.program.values.readable import read_back
from distrain_nb.program.values.refusals import PickleProblem, lost_part
from distrain_nb.program.values.shared import shared_names
from distrain_nb.worker.rank.process_state import can_be_set

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from distrain_nb.program.notebook.cells import Notebook
    from distrain_nb.program.notebook.history import Executed, ExecutionHistory
    from distrain_nb.program.proof.replay import Replay
    from distrain_nb.program.python.names import Names
    from distrain_nb.program.python.reads import ByText, Use

_SHOWN_LAST = re.compile(r"_{1,3}|_\d+|_i{1,3}|_i\d+")  # as IPython calls what cells show, and are
_READ_BACK = 2**20  # bytes: smaller values are read again here, which takes milliseconds
_MOST_OF_MODULES = 2**20  # bytes of one name of a module: what is larger was loaded, not changed
_PROMPT = {"In", "Out", "_ih", "_oh", "_dh", "get_ipython"}


@dataclass
class Gathering:
    """The work of finding all that a cell needs. `found` and `findings` are the result."""

    notebook: Notebook
    history: ExecutionHistory
    limit: int
    own: frozenset[str] = frozenset()  # what the cell sets before functions read it
    replay: Replay | None = None  # of the cells that asked for the rank
    by_cells: bool = False  # these cells run again, not only statements
    found: dict[str, Needed] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _waiting: deque[PendingName] = field(default_factory=deque)
    _settled: set[str] = field(default_factory=set)  # looked at, and nothing travels
    _missing: list[PendingName] = field(default_factory=list)  # what the notebook does not have
    _shared: set[str] = field(init=False)
    _by_text: dict[tuple[ByText, str], None] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)  # that travel as files
    repeated: list[Needed] = field(default_factory=list)  # what statements set that give no name
    _by_subclasses: str = ""  # where code asks for the subclasses of a class
    _bound: set[str] = field(default_factory=set)  # by the cell, and by what it captures
    measured: set[str] = field(default_factory=set)  # results, which are the notebook's
    _unread: dict[str, PendingName] = field(default_factory=dict)  # small values, by their names

    def __post_init__(self) -> None:
        names, watched = self.notebook.namespace, self.notebook.observer is not None
        observer = self.notebook.observer or Observer(names, lambda *_: None)
        self._shared = shared_names(names, observer.holds())
        seen = SeenReads(observer, watched, self.replay)
        self.world = World(self.notebook.namespace, self.history, seen)
        self._choices = Choices(self.notebook, self.history, self.world, self.limit)
        self.definitions = self._choices.definitions

    def want(self, uses: Iterable[Use], label: str) -> None:
        """Ask for what code of a cell needs."""
        for use in uses:
            where = f"{label}, line {use.line}"
            self._waiting.append(
                PendingName(use.name, where, use.certain, use.at_once, use.deleted)
            )

    def want_inside(self, executed: Executed, but: str = "") -> None:
        """Ask for what functions read which a statement calls before the cell gives these names."""
        statement, world = executed.statement, self.world
        inside = {*world.reaches.read_inside(statement), *world.seen.read_then(statement)}
        for name in sorted((inside & self.own) - {but}):
            self._waiting.append(PendingName(name, statement.where, required=True))

    def want_name(self, name: str, where: str) -> None:
        """Ask for a name that is needed there, such as one that the program is to give back."""
        self._waiting.append(PendingName(name, where, required=True))

    def beside(self) -> Gathering:
        """Return a gathering that begins with what this one has found, and leaves that as it is."""
        inner = copy.copy(self)
        inner.found, inner._settled = {**self.found}, {*self._settled}
        inner.findings, inner.repeated, inner._missing = [], [], []
        inner._waiting, inner._by_text, inner._unread = deque(), {}, {}
        return inner

    def read_by_text(self, names: Names, label: str) -> None:
        """Keep where code of a cell reads names that it makes at run time."""
        self._bound |= names.binds
        for reading in names.by_text:
            value = self.notebook.namespace.get(reading.by, getattr(builtins, reading.by, None))
            if reading.by == SUBCLASSES:
                self._by_subclasses = f"{label}, line {reading.line}"
            elif reading.by not in names.binds and is_builtin(reading.by, value):
                self._by_text[reading, label] = None

    def want_module_state(self, files: Iterable[str], imported: Collection[str]) -> None:
        """Take what modules that travel as files have and their files do not surely give, those
        that the program imports first."""
        self.modules = modules_in(files)
        sets, refused = from_the_world(self.modules, self.world)
        self.findings += refused
        for path, executed in sets.items():
            self.repeat(path.replace(":", "."), executed)
        for name, value in module_state(files, self.world):
            if name in self.found or name in sets:
                continue
            late = name.partition(":")[0] not in imported
            if not self._state_travels(name, value, late=late):
                self.findings += left_in_module(name, value, self.world)
        self.run()

    def repeat(self, name: str, executed: Executed) -> None:
        """Have every rank run a statement that gives no name; `name` says what it sets."""
        imports = imports_again(executed, self.history, self.notebook.namespace)
        how = SourceCode((*imports, executed), world=self.world.knows_world(executed))
        self.repeated.append(Needed(name, None, how, (executed.statement.where,)))
        self._statement(name, executed, {n for item in imports for n in item.statement.binds})

    def want_process_state(self, states: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        """Take state of the process by its names, and return what stays in the notebook."""
        return {n: s for n, s in states if not (can_be_set(n) and self._state_travels(n, s))}

    def _state_travels(self, name: str, value: Any, *, late: bool = True) -> bool:
        module = name.partition(":")[0]
        trial = try_value(name, value, self.definitions, _MOST_OF_MODULES)
        if trial.problem or not trial.complete:
            return False
        self._travels(module, Needed(name, value, Value(), (module,), trial, late=late))
        return True

    def run(self) -> None:
        """Settle every name, and those that come up on the way."""
        while self._waiting or self._breaks_circle() or self._wants_subclasses():
            pending = self._waiting.popleft()
            if needed := self.found.get(pending.name):
                where = tuple(dict.fromkeys((*needed.where, pending.where)))
                self.found[pending.name] = replace(needed, where=where)
            elif pending.name not in self._settled:
                self._settle(pending)

    def _wants_subclasses(self) -> bool:
        names = subclasses_of(self.found, self.definitions) if self._by_subclasses else set()
        for name in sorted(names - self.found.keys() - self._settled):
            self._waiting.append(PendingName(name, self._by_subclasses, required=True))
        return bool(self._waiting)

    def finish(self) -> None:
        """Tell what is missing, and what has changed, once all is found."""
        self._read_back()
        if not self.by_cells:
            self.findings += doubts.rebound(self.found, self.repeated, self.world)
        told = doubts.lost, doubts.unseen, doubts.told_by_files, unrepeated, identities, unreached
        self.findings += [f for findings in told for f in findings(self.found, self.world)]
        self.findings += undefined(self._missing, self.found, self.history, self.notebook)
        known = {*self.found, *self._bound, *_PROMPT, *(self.notebook.ranks or ())}
        self.findings += doubts.by_text(self._by_text, self.found, known, self.notebook.namespace)

    def say(
        self, code: str, severity: Severity, where: str, message: str, *fixes: Fix[str]
    ) -> None:
        """Record a finding."""
        self.findings.append(Finding(f"capture.{code}", severity, where, message, fixes))

    def _settle(self, pending: PendingName) -> None:
        name, namespace = pending.name, self.notebook.namespace
        if name in MODULE_NAMES:
            return
        stays, findings, reads = settle(self.notebook, pending, self.history)
        self.findings += findings
        self._waiting += reads
        if stays:
            self._settled.add(name)
            return
        value = namespace.get(name)
        if name in self.notebook.given:
            self._carry(pending, self.notebook.given[name])
        elif how := by_replay(name, self):
            self._take(Needed(name, value, how, (pending.where,)), pending)
        elif name == "display" and (name not in namespace or is_builtin("exit", value)):
            self._settled.add(name)  # as in a notebook, every rank has one
        elif name in _PROMPT:
            self._prompt(pending)
        elif name not in namespace:
            self._settled.add(name)
            if pending.required and _SHOWN_LAST.fullmatch(name) and not is_builtin(name):
                self._prompt(pending)
            elif not is_builtin(name) and pending.required:
                self._missing.append(pending)
        elif not is_builtin(name, value):
            self._choose(pending, value)

    def _choose(self, pending: PendingName, value: Any) -> None:
        how, trial = self._choices.of(pending.name)
        if isinstance(how, NoSource):
            self.findings.append(no_source(pending, value, self.notebook))
            self._settled.add(pending.name)
        elif trial is not None:
            self._travels(pending.where, Needed(pending.name, value, how, (pending.where,), trial))
        elif isinstance(how, (Literal, Value)):  # unless each process has to make its own
            name, where = pending.name, pending.where
            made = None if pending.deleted else remake(name, value, where, self.world)
            if made is None or not self._remade(made, pending, value):
                self._carry(pending, None if pending.deleted else value)
        else:
            self._take(Needed(pending.name, value, how, (pending.where,)), pending)

    def _take(self, needed: Needed, pending: PendingName) -> None:
        self.found[needed.name] = needed
        if isinstance(needed.how, SourceCode):
            self._source(pending, needed.how)
            limits = self.definitions, self.limit
            own_weights = self.replay is not None and self.replay.gives_weights(needed.name)
            weights = () if own_weights else weights_of(needed, pending.where, *limits)
            caches = caches_of(needed, pending.where, self.world, self.definitions)
            state = state_of(needed, pending.where, self.world, *limits)
            for weight in (*weights, *state, *caches):
                if isinstance(weight, Finding):
                    self.findings.append(weight)
                else:
                    self._travels(pending.where, weight)

    def _remade(self, made: Remade, pending: PendingName, value: Any) -> bool:
        """Take what is made again; True where the value itself must not travel."""
        if made.how is not None and (made.how.world or pending.required):
            self._take(Needed(pending.name, value, made.how, (pending.where,)), pending)
            return True
        if made.finding is None:
            return False
        if made.refused and not pending.required:
            self._settled.add(pending.name)
            why = f"{type(value).__name__}, made for the notebook's process"
            self.findings.append(not_captured(pending, why))
            return True
        self.findings.append(made.finding)
        if not made.refused:
            self.measured.add(pending.name)
        if made.refused:
            self._settled.add(pending.name)
        return made.refused

    def _carry(self, pending: PendingName, value: Any) -> None:
        is_own = pending.name in self._shared and pending.name not in self.notebook.given
        how = Value() if is_own and not pending.deleted else as_data(value)
        needed = Needed(pending.name, value, how, (pending.where,))
        if isinstance(how, Value):
            self._value(pending, needed)
        else:
            self.found[pending.name] = needed

    # -- source -------------------------------------------------------------------------------

    def _source(self, pending: PendingName, how: SourceCode) -> None:
        if how.why:
            where = how.chain[-1].statement.where
            message = f"`{pending.name}` {how.why} ({where}) when the run starts"
            self.say("made-again", Severity.INFO, pending.where, message)
        for executed in how.chain:
            self._statement(pending.name, executed)

    def _statement(self, name: str, executed: Executed, but: Collection[str] = ()) -> None:
        statement = executed.statement
        for note in (n for n in statement.notes if n.severity is Severity.ERROR):
            where = f"{statement.label}, line {note.line}"
            message = f"{note.message} (`{name}` is captured from there)"
            self.say("ipython-syntax", Severity.ERROR, where, message)
        names = statement.names(self.history.late_annotations)
        self.read_by_text(names, statement.label)
        needs = [use for use in names.needs.values() if use.name not in {name, *but}]
        uses = [use for use in needs if use.at_once or use.name not in self.own]
        self.want(uses, statement.label)
        self.want_inside(executed, but=name)

    def _breaks_circle(self) -> bool:
        """Have a value that a definition fills, which it holds, be there for that by its text."""
        for needed in [*self.found.values()]:
            if needed.first or needed.root:
                continue
            names = needed.trial.seen.names if needed.trial else ()
            hows = [self.found[name].how for name in names if name in self.found]
            texts = [e for how in hows if isinstance(how, SourceCode) for e in how.chain]
            reads = self.world.reaches.reads
            is_filled = any(reads(executed.statement, needed.name) for executed in texts)
            how = self._choices.text_of(needed.name) if is_filled else None
            if how is None:
                continue
            where = PendingName(needed.name, needed.where[0], required=True)
            if isinstance(needed.value, (type, FunctionType)):
                self._take(replace(needed, how=how, trial=None), where)
            else:
                self.found[needed.name] = replace(needed, first=how.chain)
                self._source(where, how)
            if self._waiting:
                return True
        return False

    # -- values -------------------------------------------------------------------------------

    def _value(self, pending: PendingName, needed: Needed) -> None:
        report(f"looking at {needed.name}")
        trial = try_value(needed.name, needed.value, self.definitions, self.limit)
        why = "holds a function without a name, and is made again"
        made = by_statement(needed.name, self.history, why) if trial.local_function else None
        cls = type(needed.value)
        if made and not (self.definitions.owns(cls) and not [*self.definitions.paths(cls)]):
            self._take(replace(needed, how=made), pending)
            return
        if trial.bound:
            dependence = Dependence("world", trial.bound, "")
            again = remake_for(needed.name, needed.value, dependence, pending.where, self.world)
            self._remade(again, pending, needed.value)
            return
        if trial.problem:
            repeats = by_repeated(needed.name, self.history, (n.how for n in self.repeated))
            if repeats:
                self._take(replace(needed, how=repeats), pending)
            else:
                self._not_picklable(pending, trial.problem)
            return
        if trial.complete and trial.size <= _READ_BACK:
            self._unread[needed.name] = pending
        self._travels(pending.where, replace(needed, trial=trial))

    def _read_back(self) -> None:
        """Refuse the values that can't be read again, and tell what others lack then."""
        trials = ((n, self.found[n].value, self.found[n].trial) for n in self._unread)
        values = {name: (value, trial.seen) for name, value, trial in trials if trial}
        for name, known in read_back(values, self.definitions).items():
            pending = self._unread[name]
            if known.problem:
                del self.found[name]
                self._not_picklable(pending, known.problem)
            elif pending.required:  # unlike `loss` of the run before, which a loop sets first
                self.findings += lost_part(pending.where, name, known.lost)

    def _travels(self, where: str, needed: Needed) -> None:
        """Take a value that can be pickled, and what its pickle refers to."""
        assert needed.trial is not None
        self.found[needed.name] = needed
        seen, where = needed.trial.seen, f"{where}, in `{needed.name}`"
        for names, at_once in ((seen.names, True), (seen.later - seen.names, False)):
            for name in sorted(names):
                self._waiting.append(PendingName(name, where, required=True, at_once=at_once))

    def _not_picklable(self, pending: PendingName, problem: PickleProblem) -> None:
        self._settled.add(pending.name)
        if pending.required:
            self.say("not-portable", Severity.ERROR, pending.where, problem.message(pending.name))
        else:
            self.findings.append(not_captured(pending, problem.short))

    def _prompt(self, pending: PendingName) -> None:
        self._settled.add(pending.name)
        if pending.name != "get_ipython" or (pending.at_once and pending.required):
            self.findings.append(of_prompt(pending.name, pending.where))

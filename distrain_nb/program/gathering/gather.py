"""Everything that a cell needs from the notebook, and in turn what that needs."""

from __future__ import annotations

import builtins
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.program.gathering.needed import Needed, PendingName
from distrain_nb.program.gathering.own_names import set_by_functions
from distrain_nb.program.gathering.rebound import rebound
from distrain_nb.program.gathering.remake import Remade, remake, remake_for, with_fillings
from distrain_nb.program.gathering.resolve import (
    Literal,
    NoSource,
    SourceCode,
    Value,
    as_data,
    by_statement,
    is_builtin,
    resolve,
)
from distrain_nb.program.gathering.undefined import undefined_name
from distrain_nb.program.gathering.unseen import unseen
from distrain_nb.program.notebook.seen import SeenReads
from distrain_nb.program.notebook.source_match import changed_methods
from distrain_nb.program.notebook.world import World
from distrain_nb.program.notebook.world_reads import Reading
from distrain_nb.program.progress import report
from distrain_nb.program.values.pickling import Definitions, PickleProblem, try_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distrain_nb.program.notebook.cells import Notebook
    from distrain_nb.program.notebook.history import Executed, ExecutionHistory
    from distrain_nb.program.python.reads import Use

_MODULE_NAMES = {
    *("__name__", "__file__", "__doc__", "__builtins__", "__spec__", "__loader__"),
    *("__package__", "__annotations__", "__class__", "__dict__", "__debug__"),
}
_PROMPT = {"In", "Out", "_ih", "_oh", "_dh", "get_ipython"}


@dataclass
class Gathering:
    """The work of finding all that a cell needs. `found` and `findings` are the result."""

    notebook: Notebook
    history: ExecutionHistory
    limit: int
    own: frozenset[str] = frozenset()  # what the cell sets before functions read it
    found: dict[str, Needed] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _waiting: deque[PendingName] = field(default_factory=deque)
    _settled: set[str] = field(default_factory=set)  # looked at, and nothing travels
    _missing: list[PendingName] = field(default_factory=list)  # what the notebook does not have

    def __post_init__(self) -> None:
        self.definitions = Definitions(self.notebook.namespace)
        seen = SeenReads(self.notebook.observer)
        self.world = World(self.notebook.namespace, self.history, seen)

    def want(self, uses: Iterable[Use], label: str) -> None:
        """Ask for what code of a cell needs."""
        for use in uses:
            where = f"{label}, line {use.line}"
            self._waiting.append(
                PendingName(use.name, where, use.certain, at_once=use.at_once, deleted=use.deleted)
            )

    def want_result(self, name: str) -> None:
        """Ask for a name that the program is to give back."""
        self._waiting.append(PendingName(name, "--result", required=True))

    def run(self) -> None:
        """Settle every name, and those that come up on the way."""
        while self._waiting:
            wanted = self._waiting.popleft()
            known = self.found.get(wanted.name)
            if known is not None:
                if wanted.where not in known.where:
                    where = (*known.where, wanted.where)
                    self.found[wanted.name] = replace(known, where=where)
            elif wanted.name not in self._settled:
                self._settle(wanted)

    def finish(self) -> None:
        """Tell what is missing, and what has changed, once all is found."""
        self.findings += rebound(self.found, self.history)
        self.findings += unseen(self.found, self.world)
        set_inside = set_by_functions(self.found, self.history)
        for wanted in self._missing:
            if wanted.name not in set_inside:
                self._undefined(wanted)
        self._missing.clear()

    def say(
        self,
        code: str,
        severity: Severity,
        where: str,
        message: str,
        fixes: tuple[Fix[str], ...] = (),
    ) -> None:
        """Record a finding."""
        self.findings.append(Finding(f"capture.{code}", severity, where, message, fixes))

    def _settle(self, wanted: PendingName) -> None:
        name, namespace = wanted.name, self.notebook.namespace
        if name in _MODULE_NAMES:
            return
        value = namespace.get(name)
        if name in self.notebook.given:
            self._carry(wanted, self.notebook.given[name])
        elif name == "display" and (name not in namespace or is_builtin("exit", value)):
            self._settled.add(name)  # as in a notebook, every rank has one
        elif name in _PROMPT:
            self._prompt(wanted)
        elif name not in namespace:
            self._settled.add(name)
            if not is_builtin(name) and wanted.required:
                self._missing.append(wanted)
        elif not is_builtin(name, value):
            self._capture(wanted, value)

    def _capture(self, wanted: PendingName, value: Any) -> None:
        how = resolve(wanted.name, value, self.history, self.definitions)
        if isinstance(how, NoSource):
            self._no_source(wanted, value)
        elif isinstance(how, (Literal, Value)):
            self._data(wanted, value)
        else:
            if isinstance(how, SourceCode):
                how = with_fillings(wanted.name, how, self.world)
            self._take(Needed(wanted.name, value, how, (wanted.where,)), wanted)

    def _take(self, needed: Needed, wanted: PendingName) -> None:
        self.found[needed.name] = needed
        if isinstance(needed.how, SourceCode):
            self._source(wanted, needed.how)

    def _data(self, wanted: PendingName, value: Any) -> None:
        """A value travels, unless each process has to make its own."""
        if wanted.deleted:
            self._carry(wanted, None)
            return
        made = remake(wanted.name, value, wanted.where, self.world)
        if not self._remade(made, wanted, value):
            self._carry(wanted, value)

    def _remade(self, made: Remade, wanted: PendingName, value: Any) -> bool:
        """Take what is made again; True where the value itself must not travel."""
        if made.how is not None and (made.how.world or wanted.required):
            self._take(Needed(wanted.name, value, made.how, (wanted.where,)), wanted)
            return True
        if made.finding is None:
            return False
        if made.refused and not wanted.required:
            self._settled.add(wanted.name)
            self._not_captured(wanted, f"{type(value).__name__}, made for the notebook's process")
            return True
        self.findings.append(made.finding)
        if made.refused:
            self._settled.add(wanted.name)
        return made.refused

    def _carry(self, wanted: PendingName, value: Any) -> None:
        how = as_data(value)
        needed = Needed(wanted.name, value, how, (wanted.where,))
        if isinstance(how, Value):
            self._value(wanted, needed)
        else:
            self.found[wanted.name] = needed

    # -- source -------------------------------------------------------------------------------

    def _source(self, wanted: PendingName, how: SourceCode) -> None:
        if how.why:
            first = how.chain[-1].statement
            self.say(
                "made-again",
                Severity.INFO,
                wanted.where,
                f"`{wanted.name}` {how.why} ({first.where}) when the run starts",
            )
        if len(how.chain) == 1:
            self._tell_changes(wanted, how.chain[0])
        for executed in how.chain:
            self._statement(wanted.name, executed)

    def _tell_changes(self, wanted: PendingName, executed: Executed) -> None:
        value = self.notebook.namespace[wanted.name]
        for method in changed_methods(executed.statement, value):
            self.say(
                "changed-class",
                Severity.WARNING,
                wanted.where,
                f"`{wanted.name}.{method}` is no longer what {executed.statement.where} defines,"
                " but the run gets that version: run the cell again, or change it there",
            )

    def _statement(self, name: str, executed: Executed) -> None:
        statement = executed.statement
        for note in statement.notes:
            if note.severity is not Severity.ERROR:
                continue
            where = f"{statement.label}, line {note.line}"
            message = f"{note.message} (`{name}` is captured from there)"
            self.say("ipython-syntax", Severity.ERROR, where, message)
        names = statement.names(self.history.late_annotations)
        uses = [
            use
            for use in names.needs.values()
            if use.name != name and (use.at_once or use.name not in self.own)
        ]
        self.want(uses, statement.label)

    def _no_source(self, wanted: PendingName, value: Any) -> None:
        kind = "class" if isinstance(value, type) else "function"
        self.say(
            "no-source",
            Severity.ERROR if wanted.required else Severity.WARNING,
            wanted.where,
            f"the {kind} `{wanted.name}` is not what any executed cell defines:"
            " define it at the top level of a cell, or import it from a file",
        )
        self._settled.add(wanted.name)

    # -- values -------------------------------------------------------------------------------

    def _value(self, wanted: PendingName, needed: Needed) -> None:
        report(f"looking at {needed.name}")
        trial = try_value(needed.name, needed.value, self.definitions, self.limit)
        if trial.local_function:
            made = by_statement(
                needed.name, self.history, "holds a function without a name, and is made again"
            )
            if made:
                self._take(replace(needed, how=made), wanted)
                return
        if trial.bound:
            reading = Reading("world", trial.bound, "")
            made_again = remake_for(needed.name, needed.value, reading, wanted.where, self.world)
            self._remade(made_again, wanted, needed.value)
            return
        if trial.problem:
            self._not_picklable(wanted, trial.problem)
            return
        self.found[needed.name] = replace(needed, trial=trial)
        for path in sorted(trial.seen.replaced):
            self.say(
                "replaced-class",
                Severity.WARNING,
                wanted.where,
                f"`{needed.name}` was made with an earlier definition of `{path}`;"
                " in the run it gets the latest one",
            )
        for name in sorted(trial.seen.names):
            where = f"{wanted.where}, in `{needed.name}`"
            self._waiting.append(PendingName(name, where, required=True))

    def _not_picklable(self, wanted: PendingName, problem: PickleProblem) -> None:
        self._settled.add(wanted.name)
        if not wanted.required:
            why = f"`{problem.path}`, {problem.type}, {problem.reason}"
            self._not_captured(wanted, why)
            return
        inside = "" if problem.path == wanted.name else f" in `{wanted.name}`"
        self.say(
            "not-portable",
            Severity.ERROR,
            wanted.where,
            f"`{problem.path}` ({problem.type}){inside} {problem.reason} and can't be captured:"
            f" {problem.advice}",
        )

    def _not_captured(self, wanted: PendingName, why: str) -> None:
        message = f"`{wanted.name}` is not captured, as the cell sets its own ({why})"
        self.say("not-carried", Severity.INFO, wanted.where, message)

    # -- names that the notebook doesn't have -------------------------------------------------

    def _undefined(self, wanted: PendingName) -> None:
        known = {*self.notebook.namespace, *dir(builtins)}
        hint, fixes = undefined_name(wanted.name, known)
        self.say(
            "undefined-name",
            Severity.ERROR if wanted.at_once else Severity.WARNING,
            wanted.where,
            f"`{wanted.name}` is not defined in the notebook: {hint}",
            fixes,
        )

    def _prompt(self, wanted: PendingName) -> None:
        self._settled.add(wanted.name)
        if wanted.name == "get_ipython" and not (wanted.at_once and wanted.required):
            return
        self.say(
            "not-portable",
            Severity.ERROR,
            wanted.where,
            f"`{wanted.name}` belongs to the notebook and does not exist in a run:"
            " assign what you need of it to a variable in another cell",
        )

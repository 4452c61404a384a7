"""The cells that asked for the rank, run again in a fork: as the kernel, and as rank 1 of 2."""

from __future__ import annotations
import __future__

import ast
import os
import re
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from operator import or_
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from distrain_nb.findings import Severity
from distrain_nb.observed.frames import run_by
from distrain_nb.observed.generators import marks, restore_generators
from distrain_nb.observed.module_changes import is_users, own_modules
from distrain_nb.program.notebook.history import LEFT_OUT
from distrain_nb.program.proof.forked import Untried, tried
from distrain_nb.program.proof.texts import difference, is_of_weights, texts_of, without_weights
from distrain_nb.worker.fingerprint import digest
from distrain_nb.worker.rank.caches import CACHED
from distrain_nb.worker.rank.program import execute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import CodeType

    from distrain_nb.observed import Observer
    from distrain_nb.program.notebook.history import Executed, ExecutionHistory

SECONDS = 5.0  # that a fork may take, and cells may have taken
_ROUNDS = 10  # each finds cells that read what the one before has found
_OF_IPYTHON = re.compile(r"_\w*|In|Out|get_ipython|exit|quit|open|__\w+__")
_SIZES = re.compile(r".*(SIZE|NTASKS|NPROC|NNODES|NODES|NUM_PROCESSES|RANKS).*")
_NUMBERS = re.compile(r".*(RANK|PROCID|LOCALID|NODEID|PROCESS_ID).*")
ALONE: dict[str, str] = {}  # the environment of the kernel
OTHER_RANK = {
    **dict.fromkeys(("RANK", "LOCAL_RANK"), "1"),
    **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), "2"),
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
    "GROUP_RANK": "0",
}

_BEGINNING = (-1, -1)  # in place of a statement's
Place = tuple[int, int]  # of a statement: cell, statement
Texts = dict[str, dict[str, str]]


class Ran(NamedTuple):
    """What cells gave that ran again: `before` are the texts of the kernel's names, `after` those
    that the cells left, `steps` the names' digests at first and after each statement, without
    weights and with them, `ended` marks of the random generators after each cell, `failed` the
    statements that failed."""

    before: Texts
    after: Texts
    steps: list[tuple[Place, dict[str, tuple[str, str]]]]
    ended: dict[str, dict[str, str]]
    failed: set[Place]


@dataclass
class Replay:
    """What came of cells that ran again, alone and as rank 1 of 2."""

    executed: list[Executed]  # all statements of the cells
    alone: Ran
    other: Ran
    environment: Mapping[str, str]
    knows: dict[str, tuple[str, Executed]] = field(init=False)
    _own_weights: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.knows = dict(self._knowing())

    def is_proven(self, name: str) -> bool:
        """Return whether the cells give a name all that it has in the kernel, but for
        weights."""
        before, after = (run.get(name, {}) for run in (self.alone.before, self.alone.after))
        return without_weights(before) == without_weights(after)

    def decides(self, name: str) -> bool:
        """Return whether another rank has a name otherwise, of which the cells give all."""
        return name in self.knows and self.is_proven(name)

    def passing(self, history: ExecutionHistory) -> set[str]:
        """Return the names that another rank had otherwise at some time, and that other cells have
        bound since: with what the kernel had then nobody can compare them."""
        steps = zip(self.alone.steps, self.other.steps, strict=True)
        unlike = {n for (_, one), (_, two) in steps for n in one if one[n] != two.get(n)}
        ran = {executed.at for executed in self.executed}
        return {n for n in unlike if any(e.at not in ran for e in history.of(n)[:1])}

    def gives_weights(self, name: str) -> bool:
        """Return whether another rank has other weights in a model, which must not travel then."""
        return name in self._own_weights

    def seeds_alike(self, seed: Executed, generator: str) -> bool:
        """Return whether another rank had a generator where the kernel had it when the cell of a
        seed ended."""
        label = seed.statement.label
        alone, other = (run.ended.get(label, {}) for run in (self.alone, self.other))
        return generator in alone and alone[generator] == other.get(generator)

    def goes_on(self, executed: Executed) -> bool:
        """Return whether another rank passes a statement at which the kernel's cell ended."""
        return executed.at in self.alone.failed - self.other.failed

    def makers(self, name: str) -> list[Executed]:
        """Return the statements that changed what a name stands for."""
        places: set[Place] = set()
        for ran in (self.alone, self.other) if self.is_proven(name) else ():
            which = int(self.gives_weights(name))
            texts = [(place, digests.get(name, ("", ""))[which]) for place, digests in ran.steps]
            places.update(now[0] for old, now in pairwise(texts) if old[1] != now[1])
        return [executed for executed in self.executed if executed.at in places]

    def changed(self) -> set[str]:
        """Return the names that the cells bound or changed."""
        return {n for n in self.alone.after if self.makers(n)} | self.knows.keys()

    def _knowing(self) -> Iterator[tuple[str, tuple[str, Executed]]]:
        """Yield the names that rank 1 of 2 would have otherwise, with the first part that differs
        and the statement that gave it."""
        by_place = {executed.at: executed for executed in self.executed}
        for name in {**self.alone.after, **self.other.after}:
            alone, other = self._comparable(name)
            path = difference(alone, other)
            if not path:
                continue
            both = alone.keys() & other.keys()
            if any(alone[p] != other[p] for p in both if is_of_weights(p)):
                self._own_weights.add(name)
            steps = zip(self.alone.steps, self.other.steps, strict=True)
            differing = (one[0] for one, two in steps if one[1].get(name) != two[1].get(name))
            place = next(differing, None)
            if place is not None:
                yield name, (path, by_place[place])

    def _comparable(self, name: str) -> tuple[dict[str, str], dict[str, str]]:
        """Return what a name had alone and as rank 1 of 2, without the parts that the cells don't
        give as the kernel has them: a time, a draw, what training has changed since."""
        kernel, alone, other = (
            texts.get(name, {}) for texts in (self.alone.before, self.alone.after, self.other.after)
        )
        unlike = {p for p in {**kernel, **alone} if kernel.get(p) != alone.get(p)}
        return tuple(  # type: ignore[return-value]
            {p: text for p, text in texts.items() if p not in unlike} for texts in (alone, other)
        )


def replayed(history: ExecutionHistory, observer: Observer | None) -> Replay | Untried | None:
    """Run the cells again that asked for the rank, and those that used what they made. Return None
    where no cell asked, and Untried where they can't run again."""
    if observer is None:
        return None
    cells = _Cells(history, observer)
    state = cells.state()
    before, replay = _latest.get(observer, (None, None))
    if before != state:
        try:
            replay = _replayed(cells, observer)
        except Untried as why:
            replay = why
        _latest[observer] = state, replay
    return replay


# What came of the cells as they are: a form looks at a cell again with each change of an option.
_latest: WeakKeyDictionary[Observer, tuple[object, Replay | Untried | None]] = WeakKeyDictionary()


def _replayed(cells: _Cells, observer: Observer) -> Replay | None:
    asked = {label for label in cells.labels if cells.asked(label)}
    drawing, replay = set[str](), None
    for _ in range(_ROUNDS if asked else 0):
        try:
            replay = _once(cells, observer, asked | drawing)
            asked |= drawing
        except Untried:
            if not drawing:
                raise
            # Cells of `drawing` don't run again. A finding says that all ranks have the
            # numbers that the notebook drew.
            replay = _once(cells, observer, asked)
        more = cells.using(replay.knows, asked)
        drawing = cells.drawing(replay, asked) | cells.using(replay.passing(cells.history), asked)
        if not more | drawing:
            break
        asked |= more
    return replay


def _once(cells: _Cells, observer: Observer, labels: set[str]) -> Replay:
    """Run cells again, with those that must come before, alone and as another rank."""
    executed = cells.statements(labels)
    took = sum(observer.draws.took.get(label, 0.0) for label in labels)
    if took > SECONDS:
        raise Untried(f"they took {took:.0f} s")
    environment = _environment(observer, labels)
    alone = cells.run_again(executed, ALONE)
    return Replay(executed, alone, cells.run_again(executed, environment), environment)


def _environment(observer: Observer, labels: Iterable[str]) -> dict[str, str]:
    """Return the variables of rank 1 of 2: the usual ones, and those that the cells asked for."""
    reads = {read.what for label in labels for s in observer.sites(label) for read in s.reads}
    asked = (re.fullmatch(r"os\.environ\['(\w+)'\]", question) for question in reads)
    names = [match[1] for match in asked if match]
    sizes = dict.fromkeys(filter(_SIZES.fullmatch, names), "2")
    return {**dict.fromkeys(filter(_NUMBERS.fullmatch, names), "1"), **sizes, **OTHER_RANK}


class _Cells:
    def __init__(self, history: ExecutionHistory, observer: Observer) -> None:
        self.history, self.observer, self.namespace = history, observer, observer.namespace
        self.by_label: dict[str, list[Executed]] = {}
        for executed in history.executed:
            self.by_label.setdefault(executed.statement.label, []).append(executed)
        self.labels = [*self.by_label]
        futures = (getattr(__future__, name).compiler_flag for name in history.futures)
        self.flags = reduce(or_, futures, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

        askers = observer.askers
        self.answers = {n for n, v in [*self.namespace.items()] if _keeps_answers(v, askers)}

    def state(self) -> object:
        """Return what is equal while no cell has run but such as start a job, and no name stands
        for another object."""
        ran = [e for e in self.history.executed if not e.statement.text.startswith(LEFT_OUT)]
        names = [(name, id(value)) for name, value in [*self.namespace.items()]]
        ours = tuple(pair for pair in names if not _OF_IPYTHON.fullmatch(pair[0]))
        return tuple((e.at, e.statement) for e in ran), ours

    def asked(self, label: str) -> bool:
        """Return whether a cell asked for the rank, or read what knows it."""
        sites = self.observer.sites(label)
        if any(site.reads for site in sites) or self.observer.readers(label):
            return True
        return bool(self.answers) and any(
            self.answers & self._reads(e) for e in self.by_label[label]
        )

    def using(self, names: Iterable[str], but: set[str]) -> set[str]:
        """Return the cells that read names after these were made."""
        searched = set(names)
        return {
            label
            for label in self.labels
            if label not in but and any(searched & self._reads(e) for e in self.by_label[label])
        } - self._before(but)

    def drawing(self, replay: Replay, but: set[str]) -> set[str]:
        """Return the cells that draw from a generator which another rank has elsewhere by then, up
        to one that seeds generators anew."""
        draws, unlike, labels = self.observer.draws, set[str](), set[str]()
        seeding = {seed.label for seed in self.observer.settings.seeded}
        for label in self.labels:
            if label in but:
                kernel, other = draws.ended(label), replay.other.ended.get(label, {})
                alone = replay.alone.ended.get(label, {})
                proven = {g for g, mark in alone.items() if mark == kernel.get(g)}
                unlike = {g for g in proven if alone[g] != other.get(g)}
            elif unlike & draws.drawn_by(label):
                labels.add(label)
                if label in seeding:
                    break
        return labels

    def _before(self, labels: set[str]) -> set[str]:
        first = min(self.labels.index(label) for label in labels)
        return {*self.labels[:first]}

    def statements(self, labels: set[str]) -> list[Executed]:
        """Return the statements of cells in order, with the cells that bound what they filled, or
        what they read and has been bound since."""
        sites = [site for label in labels for site in self.observer.sites(label)]
        filled = [self.history.of(name)[:1] for site in sites for name in site.filled]
        labels |= {executed.statement.label for latest in filled for executed in latest}
        waiting = [*labels]
        while waiting:
            for executed in self.by_label[waiting.pop()]:
                for name in self._reads(executed):
                    every = self.history.of(name)
                    earlier = next((e for e in every if e.at < executed.at), None)
                    if earlier is None or earlier is every[0] or earlier.statement.is_import:
                        continue
                    label = earlier.statement.label
                    if label not in labels:
                        labels.add(label)
                        waiting.append(label)
        return [e for label in self.labels if label in labels for e in self.by_label[label]]

    def _reads(self, executed: Executed) -> set[str]:
        return {name for _, names in run_by(self._code(executed), self.namespace) for name in names}

    def _code(self, executed: Executed) -> CodeType:
        statement = executed.statement
        module = ast.Module([statement.node], [])
        code: CodeType = compile(module, statement.label, "exec", self.flags, dont_inherit=True)
        return code

    def run_again(self, executed: list[Executed], environment: Mapping[str, str]) -> Ran:
        for item in executed:
            if any(note.severity is Severity.ERROR for note in item.statement.notes):
                raise Untried(f"{item.statement.where} is IPython's own syntax")
        return tried(lambda: self._run(executed, environment), SECONDS)  # type: ignore[no-any-return]

    def _run(self, every: list[Executed], environment: Mapping[str, str]) -> Ran:
        """In the fork: run statements in the kernel's own names, so that its functions see them."""
        names: dict[str, Any] = self.namespace  # type: ignore[assignment]
        labels = {executed.statement.label for executed in every}
        binds = {name for executed in every for name in executed.statement.binds}
        watched = binds.union(*map(self._reads, every))
        watched = {n for n in watched if not _OF_IPYTHON.fullmatch(n)}
        watched |= {n for n in self.observer.filled() if n in names}
        before = _texts(names, watched)
        for name in binds:  # that no other cell bound before
            first = self.history.bindings.get(name, every)[0]
            if first.statement.label in labels:
                names.pop(name, None)
        for value in names.values():
            _forget_answers(value, self.observer.askers)
        os.environ.update(environment)
        steps, label = [(_BEGINNING, _digests(_texts(names, watched)))], ""
        ended: dict[str, dict[str, str]] = {}
        failed: set[Place] = set()
        for executed in every:
            if executed.statement.label != label:
                ended[label] = marks()
                self._set_generators(executed.statement.label, label)
                label = executed.statement.label
            try:
                execute(self._code(executed), names)
            except Exception:
                if not executed.failed:
                    raise
                failed.add(executed.at)
            after = _texts(names, watched)
            steps.append((executed.at, _digests(after)))
        ended[label] = marks()
        return Ran(before, after, steps, ended, failed)

    def _set_generators(self, label: str, before: str) -> None:
        """Put the generators where they were when a cell began; those go on from where they are
        that nothing in the kernel has drawn from since the cell `before`."""
        draws = self.observer.draws
        began, ended = draws.began(label), draws.ended(before)
        states = draws.states.get(label, {})
        restore_generators({g: s for g, s in states.items() if ended.get(g) != began.get(g)})


def _digests(texts: Texts) -> dict[str, tuple[str, str]]:
    return {n: (digest(repr(without_weights(t))), digest(repr(t))) for n, t in texts.items()}


def _texts(names: Mapping[str, Any], watched: Iterable[str]) -> Texts:
    """Return texts of names; of modules those of what the notebook has put into them, and of the
    user's own also those of their state."""
    objects = {name: names[name] for name in watched if name in names}
    for name, module in [*objects.items()]:
        if isinstance(module, ModuleType):
            items = [*vars(module).items()]
            of_user = is_users(module)
            objects.update(
                (f"{name}.{key}", value)
                for key, value in items
                if _is_own(value) or (of_user and _is_state(key, value))
            )
    modules = [name for name, _ in own_modules()]
    return {name: texts_of(name, value, modules) for name, value in objects.items()}


def _is_own(value: Any) -> bool:
    return isinstance(value, (type, FunctionType)) and value.__module__ == "__main__"


def _is_state(key: str, value: Any) -> bool:
    return key[:2] != "__" and not isinstance(value, (ModuleType, FunctionType))


def _forget_answers(value: Any, askers: set[CodeType]) -> None:
    """Empty the cache of a function that asked for the rank."""
    if _keeps_answers(value, askers):
        value.cache_clear()


def _keeps_answers(value: Any, askers: set[CodeType]) -> bool:
    return isinstance(value, CACHED) and getattr(value.__wrapped__, "__code__", None) in askers

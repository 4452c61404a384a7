"""What the notebook asks about its rank and its world, seen while it asks.

The kernel is a world of one, and what was made of that answer must be made again in every rank.
So reads of launchers' variables, and calls of what knows the world, are noted with the statement
of the cell that led to them. Nothing is changed but who is called first; `stop` undoes it.
"""

from __future__ import annotations

from argparse import Namespace
from collections import defaultdict
from contextlib import contextmanager
from dis import get_instructions
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from distrain_nb.observed.changes import Changes
from distrain_nb.observed.commands import asked_by_command
from distrain_nb.observed.definitions import Originals
from distrain_nb.observed.files import Files
from distrain_nb.observed.frames import (
    asking,
    cell_of,
    column_of,
    frames_to,
    is_top_level,
    kind_of,
    line_of,
    named_containers,
    of_package,
    own_frames,
    place_of,
    root_of,
    run_by,
    sets_text,
    shared_with_children,
    stored_by,
    thread_number,
    threads_at_work,
    top_of,
    values_of,
)
from distrain_nb.observed.generators import CellDraws
from distrain_nb.observed.launcher_variables import is_inherited, is_launchers
from distrain_nb.observed.module_changes import Modules
from distrain_nb.observed.objects import as_now, part_names
from distrain_nb.observed.process import Settings, Variables
from distrain_nb.observed.sites import SeenRead, Site
from distrain_nb.observed.touched import is_idle
from distrain_nb.observed.unsettled import Unsettled
from distrain_nb.observed.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import CodeType, FrameType

_ARGUMENTS = (Namespace, SimpleNamespace)  # `init_distributed_device(args)` sets `args.rank`
# How deep in a package a question matters. Deeper ones are part of other work.
# CUDA's first use looks for its devices: `net.cuda()` makes no model that knows the world.
_MOST_FRAMES, _MOST_DEPTH = 2, {"os.environ": 0, "os.environ['CUDA_VISIBLE_DEVICES']": 0}
_ALONE_WITHIN_S = 1.0


class Observer:
    """Notes reads of one notebook. `place` gives the label of a cell and a line of it as its author
    sees them, from the name of its file, the line there, and the line in what a magic runs for it,
    if any. `unseen` are the labels of cells, and the names of modules, that ran before."""

    def __init__(
        self,
        namespace: Mapping[str, Any],
        place: Callable[[str, int, int], tuple[str, int] | None],
        unseen: frozenset[str] = frozenset(),
    ) -> None:
        self.namespace, self.place, self.unseen = namespace, place, unseen
        self.active, self._lock = True, RLock()
        self.failed: dict[str, tuple[int, int]] = {}  # by cell: where
        self._running, self._ran = "", ("", 0, -1)  # the label of a cell; the last statement
        self._sites: dict[str, dict[tuple[int, int], Site]] = defaultdict(dict)
        self._seen: dict[tuple[object, ...], tuple[object, ...]] = {}
        # What a statement's lines asked from where: the way to its frame takes 3 µs.
        self._again: dict[tuple[str, int, int, int], CodeType] = {}
        self._statement: FrameType | None = None
        self._unsettled = Unsettled(namespace)
        self._last: FrameType | None = None
        self._asked = self._knows = False  # since the last statement; what the running one reads
        self.askers: set[CodeType] = set()  # the user's own functions that a question came through
        self._set: set[str] = set()  # variables, since then
        self.settings, self.variables = Settings(namespace), Variables(namespace)
        self._watch = Watch(self.see, self.sets, self.starts, self.variables)
        self.files, self.draws = Files(namespace), CellDraws()
        self.changes, self._children = Changes(namespace), self._watch.children
        self.originals, self.modules = Originals(namespace), Modules(namespace)
        self._idle = False  # the statement deals with plain values alone
        self._states: dict[str, dict[str, str]] = {}  # when the statement began
        # Where packages read the whole environment: it matters if they keep what launchers set.
        self._of_all: list[tuple[list[Site], SeenRead]] = []
        self._at_work: set[int] = set()  # threads that ran when the statement began
        self._of_threads: list[tuple[int, list[Site]]] = []  # that asked
        self._readers: dict[str, dict[tuple[int, int], set[str]]] = defaultdict(dict)

    @property
    def has_pools(self) -> bool:
        """Whether a pool has started interpreters, in which nobody sees what functions ask."""
        return self._watch.spawned

    def readers(self, label: str) -> Mapping[tuple[int, int], set[str]]:
        """Return the names that a cell's statements read when these knew the world, by the lines
        and columns of the statements."""
        return self._readers.get(label, {})

    def sites(self, label: str) -> Iterable[Site]:
        """Return the places in a cell, or a module's file, from which the world was asked."""
        if self._unsettled:
            self.settle()
        return self._sites[label].values() if label in self._sites else ()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads from noting anything meanwhile; not for long, as looking at an object
        may wait for a lock that its own thread holds."""
        is_held = self._lock.acquire(timeout=_ALONE_WITHIN_S)
        try:
            yield
        finally:
            if is_held:
                self._lock.release()

    def begin(self, label: str) -> None:
        """Note that a cell of that name is about to run; earlier ones' questions are past."""
        self._running = label
        if self._unsettled:  # a thread has asked since the last cell
            self.changes.follow(self.filled())
        for records in (self._sites, self._readers, self.variables.of, self.failed):
            records.pop(label, None)
        self.draws.begin(label)

    def end(self) -> None:
        """Note that the cell has run."""
        self.settle()
        self._forget_deleted()
        self.changes.end(self._running)
        self.draws.end(self._running, asked=self._running in {*self._sites, *self._readers})
        self._running = ""

    def _forget_deleted(self) -> None:
        """Forget which names were filled once they are deleted, as by `%reset`: who binds one anew,
        perhaps unseen, owes it to no question of before."""
        for places in self._sites.values():
            for site in places.values():
                site.filled &= self.namespace.keys()

    def runs(self, code: CodeType) -> None:
        """Note that a statement of the cell is about to run."""
        self._idle = is_idle(code, self.namespace, self.changes.names)
        if self._idle:
            self._states, self._knows = {}, False
            return
        try:
            with self._alone():
                self._runs(code)
                self.files.begin()
        except Exception:  # whatever is odd about an object: the user's code goes on
            return

    def _runs(self, code: CodeType) -> None:
        self._at_work = threads_at_work(self.namespace)
        self._states = self.changes.plain_states(code)
        known = self.changes.read_by(code) | self.modules.read_by(code)
        self._knows = bool(known)
        if known:
            for state in (self.originals, self.modules, self.settings):
                state.keep()
            label, line, column = self._at(code)
            self._readers[label][line, column] = known
            self.settle()
            self._keep_what_runs([self._site(label, line, column)], [code])

    def ran(self, code: CodeType, *, failed: bool = False) -> None:
        """Look what a statement that has run changed in objects that depend on the world."""
        waiting = self._asked or self._set or self._of_all or self._of_threads or self._unsettled
        if self._idle and not (failed or waiting or self._children.has_told):
            return
        with self._alone():
            self._look(code, failed=failed)

    def _look(self, code: CodeType, *, failed: bool) -> None:
        self._take_of_all(code)
        asked, self._asked, self._statement = self._asked, False, None
        variables, self._set, self._ran = self._set, set(), self._at(code)
        if failed:
            self.failed[self._ran[0]] = self._ran[1:]
        self._again.clear()
        self.variables.look(self._ran)
        try:
            if read := self._children.question():
                site, asked = self._site(*self._ran), True
                site.add(read, idle=False)
                shared = shared_with_children(self.namespace)
                site.beside |= bool(shared)  # and later statements may read it
                site.filled |= named_containers(code, self.namespace) | shared
            self.files.look(code, self._ran, knows=asked or self._knows)
            if asked or self._knows:
                self._watch.learn(variables)
                self.changes.follow_shown(code)
            for part in (self.originals, self.modules, self.settings):
                part.look(code, self._ran)
            self.changes.look(code, self._ran, asked or self._knows)
            if asked or self._unsettled:
                self.changes.follow(self.filled())
            at_work = threads_at_work(self.namespace) if self._of_threads else set()
            for thread, sites in self._of_threads:
                for site in sites:
                    site.in_thread = True
                    site.beside |= thread in self._at_work or thread in at_work
            self._of_threads.clear()
        except Exception:  # whatever is odd about an object: the user's code goes on
            return

    def _take_of_all(self, code: CodeType) -> None:
        """Note that a package has read the whole environment, if a name of the statement stands for
        what has launchers' variables since, as settings with a field `rank` have."""
        waiting, self._of_all = self._of_all, []
        for instruction in get_instructions(code) if waiting else ():
            is_bound = instruction.opname == "STORE_NAME"
            parts = part_names(self.namespace.get(instruction.argval)) if is_bound else ()
            if any(is_launchers(part.upper()) for part in parts):
                self._asked = True
                for sites, read in waiting:
                    for site in sites:
                        site.add(read, idle=False)
                        site.filled.add(instruction.argval)

    def _at(self, code: CodeType) -> tuple[str, int, int]:
        line, column = place_of(code)
        label, line = self.place(code.co_filename, line, 0) or (code.co_filename, line)
        return label, line, column

    def holds(self) -> Iterator[int]:
        """Yield the identities of the objects that this refers to, once for each reference."""
        self.settle()
        return self.changes.holds()

    def filled(self) -> set[str]:
        """Return the names whose objects changed while some statement asked."""
        self.settle()
        sites = [site for places in self._sites.values() for site in places.values()]
        return {*self.originals.filled, *(name for site in sites for name in site.filled)}

    def settle(self) -> None:
        """Look which objects have changed since the world was asked."""
        with self._alone():
            self._last = self._statement = None
            self._seen.clear()
            self._again.clear()
            self._unsettled.settle()

    def see(self, what: str, frame: FrameType, package: str = "") -> None:
        """Note a read, unless *package* asks itself or no statement of the notebook led here."""
        line = self._statement.f_lineno if self._statement else 0
        asker = asking(frame)
        if (what, id(asker.f_code), asker.f_lasti, line) in self._again or not self.active:
            return
        if package and root_of(frame.f_globals) == package:
            return
        with self._alone():
            self._see(what, frame, asker)

    def _see(self, what: str, frame: FrameType, asker: FrameType) -> None:
        try:
            top = cell_of(frame, self.namespace)
            code = asker.f_code
            key = (what, id(code), asker.f_lineno, id(top), top and (id(top.f_code), top.f_lineno))
            if key not in self._seen:
                self._seen[key] = (code, top)  # kept, so that no other gets its id
                self._asked |= self._note(what, frame, top)
            self._statement = top
            self._again[what, id(code), asker.f_lasti, top.f_lineno if top else 0] = code
        except Exception:  # whatever is odd about a frame: the user's code goes on
            self._asked = True

    def sets(self, variable: object, frame: FrameType) -> None:
        """Note that the notebook's code sets a variable, with its place if its line doesn't spell
        the text out."""
        try:
            top, inner = self._own(frame)
            if top and is_inherited(variable):
                self._set.add(str(variable))
                if not sets_text(inner):
                    self._site(*self._place(top), column_of(top)).sets.add(str(variable))
        except Exception:  # whatever is odd about a frame: the user's code goes on
            return

    def starts(self, command: object, frame: FrameType) -> None:
        """Note a command that a process is started with: it asks for the variables that it names,
        and nobody sees what else."""
        try:
            if asked := asked_by_command(command):
                self.see(asked, frame)
            elif top := self._own(frame)[0]:
                self._site(*self._place(top), column_of(top)).starts = True
        except Exception:  # whatever is odd about a command: the user's code goes on
            return

    def _own(self, frame: FrameType) -> tuple[FrameType | None, FrameType]:
        """Return the frame of the cell where the notebook's own code led here, and that code's."""
        top = top_of(frame, self.namespace)
        inner = next((f for f in frames_to(frame, top) if kind_of(f)), frame)
        return (top if self.active and kind_of(inner) == "own" else None), inner

    def _note(self, what: str, frame: FrameType, top: FrameType | None) -> bool:
        """Note a question with its places; false where it is a package's own matter."""
        frames, depth = own_frames(frame, top)
        direct = depth == 0
        if not frames:
            return False
        read = SeenRead(what, "{}, line {}".format(*self._place(frames[0])), direct)
        if depth > _MOST_DEPTH.get(what, _MOST_FRAMES if "(" in what else depth):
            if what == "os.environ":
                self._of_all.append(([*self._sites_of(frames)], read))
            return False
        if self._children.tell(read):
            return True
        self.askers.update(item.f_code for item in frames)
        sites = [*self._sites_of(frames)]
        for site in sites:
            site.add(read, idle=not self._running or (top is None and thread_number() > 0))
        if thread_number():
            self._of_threads.append((thread_number(), sites))
        self.modules.keep()
        self.settings.keep()
        if top and not direct and "(" not in what:
            for site in sites:
                site.filled |= of_package(frame, top, self.namespace)
            named = map(self.namespace.get, top.f_code.co_names)
            arguments = [value for value in named if isinstance(value, _ARGUMENTS)]
            self._unsettled.keep(sites, arguments)
        if direct:
            if self._last is not top:
                self.settle()
            self._last = top
            self.originals.keep()
            values = [v for item in frames if not is_top_level(item) for v in values_of(item)]
            self._keep_what_runs(sites, [item.f_code for item in frames], values)
        return True

    def _keep_what_runs(
        self, sites: list[Site], running: Iterable[CodeType], values: Iterable[object] = ()
    ) -> None:
        """Keep how that is which code, with the functions that it names, reads and may fill."""
        run = [part for outer in running for part in run_by(outer, self.namespace)]
        codes = [code for code, _ in run]
        read = {n for _, names in run for n in names if n in self.namespace}
        for site in sites:
            new = {n: as_now(self.namespace[n]) for n in read - site.read.keys()}
            site.read.update(new)
        names = {n for code in codes for n in code.co_names if n in self.namespace}
        stores = {n for code in codes for n in stored_by(code, with_globals=True)}
        every = [*values, *map(self.namespace.__getitem__, names)]
        self._unsettled.keep(sites, every, stores, with_names=bool(self._running))

    def _sites_of(self, frames: list[FrameType]) -> Iterator[Site]:
        """Yield where modules and the cell are at their top level; line 0 where the cell only
        awaits. Between statements a thread goes on that some of them has started, at the latest
        the last one."""
        top = [frame for frame in frames if is_top_level(frame)]
        for frame in top:
            if frame.f_globals is not self.namespace:
                yield self._site(frame.f_code.co_filename, frame.f_lineno, column_of(frame))
        cell = [frame for frame in top if frame.f_globals is self.namespace]
        if not cell:
            awaits = self._running and not thread_number()
            yield self._site(self._running, 0, -1) if awaits else self._site(*self._ran)
            return
        *_, below, outermost = (None, *cell)
        yield self._site(*self._place(outermost, below), -1 if below else column_of(outermost))

    def _site(self, label: str, line: int, column: int) -> Site:
        site = self._sites[label].setdefault((line, column), Site(line, column))
        site.before = site.before or self._states
        return site

    def _place(self, frame: FrameType, below: FrameType | None = None) -> tuple[str, int]:
        name, line = frame.f_code.co_filename, line_of(frame)
        return self.place(name, line, below.f_lineno if below else 0) or (name, line)

    def start(self) -> None:
        """Be called first, from now on."""
        self.active = True
        self._watch.start()

    def stop(self) -> None:
        """Put back what was there. What others have wrapped since stays, and notes nothing."""
        self.active = False
        self._watch.stop()

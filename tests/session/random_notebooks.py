"""Random notebooks with cells for the kernel and for ranks that stay; the oracle is a dict with two
owners.

`python -m tests.session.random_notebooks SEED COUNT` prints the first that differs. What captures a
cell, runs it and keeps the table of names is the real thing; one process is kernel and rank.
"""

from __future__ import annotations

import copy
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from distrain_nb.findings import errors
from distrain_nb.program import Cell, Notebook, capture
from distrain_nb.program.gathering.ranks import RankNames
from distrain_nb.worker.files.session import NamesSent, names_of
from distrain_nb.worker.rank import program, values
from distrain_nb.worker.rank.names import NameTable, bound_lines
from distrain_nb.worker.rank.redefinitions import Redefinitions

NAMES = ("a", "b", "c")
STEPS = 12


@dataclass
class Owned:
    """A value of a name: `at` is when its owner set it, `synced` when it was sent, `sent` what."""

    value: Any
    at: int = -1
    synced: int = -1
    sent: Any = None

    @property
    def is_own(self) -> bool:
        return self.at >= 0


class Refused(Exception):
    """The cell has to be refused."""


@dataclass
class Oracle:
    """The sentence: what a cell made in the ranks stays in the ranks; what the notebook has set
    since is sent; both: refused."""

    here: dict[str, Owned] = field(default_factory=dict)
    there: dict[str, Owned] = field(default_factory=dict)

    def reads(self, name: str, at: int) -> Any:
        ours, theirs = self.here.get(name), self.there.get(name)
        if ours is None and theirs is None:
            raise Refused("undefined-name")
        if theirs is None or (ours is not None and self._is_sent(ours, theirs)):
            assert ours is not None
            self.there[name] = Owned(copy.deepcopy(ours.value), -1, at, copy.deepcopy(ours.value))
        return self.there[name].value

    def _is_sent(self, ours: Owned, theirs: Owned) -> bool:
        if not theirs.is_own:
            return ours.at > theirs.synced or ours.value != theirs.sent
        if ours.value == theirs.value and type(ours.value) is type(theirs.value):
            return False
        if ours.at > theirs.at:
            raise Refused("both-set")
        return False


class Ranks:
    """One rank, in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.main = ModuleType("__main__")
        self.table = NameTable(folder, 0, vars(self.main))
        self.number = 0
        program.prepare()

    def run(self, cell: Cell, notebook: Notebook) -> str:
        """Return the code of the finding that refuses the cell, or an empty text."""
        at = len(notebook.cells) - 1
        names = RankNames("lab", {0: names_of(self.folder, 0)}, "kernel", at)
        here = Notebook(notebook.namespace, notebook.cells, notebook.folder, ranks=names)
        made = capture(cell, 2, here)
        if errors(made.findings):
            return errors(made.findings)[0].code.partition(".")[2]
        self.number += 1
        folder = self.folder / str(self.number)
        made.write(folder)
        sent = NamesSent.read(folder)
        changes = Redefinitions(vars(self.main))

        def before_cell() -> None:
            changes.apply()
            self.table.received(sent)

        program.run_in(self.main, folder, before_cell)
        values.forget()
        self.table.cell_ended(sent, cell.label, bound_lines(cell.source.partition("\n")[2]))
        shutil.rmtree(folder)
        return ""


class Differs(AssertionError):
    """The ranks have something else than the oracle."""


class Story:
    """One notebook, as it is executed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.cells: list[Cell] = []
        self.oracle = Oracle()
        self.ranks = Ranks(folder)
        self.text: list[str] = []

    def play(self) -> None:
        for name in NAMES[:2]:
            self.here(f"{name} = {self.random.randrange(9)}", name)
        for _ in range(STEPS):
            self.random.choice(self.acts())()
            self.compare()

    def acts(self) -> list[Callable[[], None]]:
        name = self.random.choice(NAMES)
        number = self.random.randrange(1, 99)
        value = self.random.choice([str(number), f"[{number}]"])
        acts = [
            lambda: self.here(f"{name} = {value}", name),
            lambda: self.there(f"{name} = {value}", sets=name),
            lambda: self.there(f"seen = repr({name})", reads=name, sets="seen"),
            lambda: self.there(f"seen = repr({name})", reads=name, sets="seen"),
            lambda: self.there(f"{name} = [{name}]", reads=name, sets=name),
        ]
        if isinstance(self.namespace.get(name), list):
            acts.append(lambda: self.here(f"{name}.append({number})", name, mutates=True))
        if name in self.namespace and name == "c":
            acts.append(lambda: self.delete(name))
        held = self.oracle.there.get(name)
        if held is not None and isinstance(held.value, list):
            acts.append(lambda: self.append_there(name, number))
        return acts

    def here(self, text: str, name: str, *, mutates: bool = False) -> None:
        self.text.append(f"here:  {text}")
        self.cells.append(Cell(f"Cell In[{len(self.cells) + 1}]", text))
        exec(text, self.namespace)
        if mutates:
            self.oracle.here[name].value = copy.deepcopy(self.namespace[name])
        else:
            value = copy.deepcopy(self.namespace[name])
            self.oracle.here[name] = Owned(value, len(self.cells) - 1)

    def delete(self, name: str) -> None:
        self.text.append(f"here:  del {name}")
        self.cells.append(Cell(f"Cell In[{len(self.cells) + 1}]", f"del {name}"))
        del self.namespace[name], self.oracle.here[name]

    def append_there(self, name: str, number: int) -> None:
        def act(oracle: Oracle, at: int) -> None:
            before = oracle.reads(name, at)
            if isinstance(before, list):
                oracle.there[name] = Owned([*before, number], at)

        text = f"if isinstance({name}, list): {name}.append({number})"
        self._there(text, act)

    def there(self, text: str, *, sets: str, reads: str = "") -> None:
        def act(oracle: Oracle, at: int) -> None:
            if reads:
                value = oracle.reads(reads, at)
                made = [copy.deepcopy(value)] if sets == reads else repr(value)
            else:
                made = eval(text.partition(" = ")[2])
            before = oracle.there.get(sets)
            # A number that a name has already is no other value.
            if before is None or type(made) is list or before.value != made:
                oracle.there[sets] = Owned(made, at)

        self._there(text, act)

    def _there(self, text: str, act: Callable[[Oracle, int], None]) -> None:
        self.text.append(f"there: {text}")
        cell = Cell(f"Cell In[{len(self.cells) + 1}]", f"%%distrain --in lab\n{text}")
        self.cells.append(cell)
        expected, after = "", copy.deepcopy(self.oracle)
        try:
            act(after, len(self.cells) - 1)
        except Refused as refused:
            expected = str(refused)
        else:
            self.oracle = after
        refused_by = self.ranks.run(cell, Notebook(self.namespace, self.cells, self.folder))
        if refused_by != expected:
            raise Differs(f"refused by {refused_by or 'nothing'}, expected {expected or 'nothing'}")

    def compare(self) -> None:
        for name, held in self.oracle.there.items():
            there = vars(self.ranks.main).get(name, "nothing")
            if there != held.value or type(there) is not type(held.value):
                raise Differs(f"{name} is {there!r} in the ranks, expected {held.value!r}")


def main(seed: int, count: int) -> int:
    for number in range(seed, seed + count):
        with tempfile.TemporaryDirectory() as folder:
            story = Story(number, Path(folder))
            try:
                story.play()
            except Differs as error:
                print(f"notebook {number}: {error}", *story.text, sep="\n")
                return 1
    print(f"{count} notebooks")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))

"""What a program makes before its cell, compared in a fork with what the notebook has."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace as with_values
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.findings import Finding, Severity
from distrain_nb.observed.module_changes import is_users, own_modules
from distrain_nb.program.gathering.resolve import SourceCode
from distrain_nb.program.proof.forked import Untried, tried
from distrain_nb.program.proof.replay import ALONE, SECONDS
from distrain_nb.program.proof.texts import difference, texts_of, without_weights
from distrain_nb.scratch import Scratch
from distrain_nb.worker.machine.environment import variables
from distrain_nb.worker.rank import program as rank_program
from distrain_nb.worker.rank.expected import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.gathering.resolve import Needed
    from distrain_nb.program.program import Program
    from distrain_nb.program.proof.replay import Replay, Texts

Attempt = tuple["Program", "Gathering"]
_MOST_NAMED = 3
# What stands against statements, and may be no matter if their cells run again whole. An object
# that belongs to the notebook's process group stays there.
_MENDED = {"capture.rebound", "capture.not-portable"}


class Difference(NamedTuple):
    """A part of a name's object: what the notebook has, and what the program makes."""

    name: str
    path: str
    notebook: str
    program: str
    is_rank: bool  # it is of rank 1 of 2


def proven(attempt: Callable[[bool], Attempt], replay: Replay | Untried | None) -> Program:
    """Return a program that makes what the notebook has: of statements, or where these don't, of
    whole cells; else with findings that say what differs, or why nobody can tell."""
    program, gathering = attempt(False)
    if replay is None:
        return program
    if isinstance(replay, Untried):
        return _untried(program, gathering, replay)
    try:
        differences = _differences(program, gathering, replay)
        if not differences and not _errors(program):
            return program
        if not _errors(program) <= _MENDED:
            return program
    except Untried as why:
        return _untried(program, gathering, why)
    with suppress(Untried):
        of_cells, gathered = attempt(True)
        if not _errors(of_cells) and not _differences(of_cells, gathered, replay):
            return of_cells
    findings = [_finding(gathering.found[d.name], d) for d in differences]
    return with_values(program, findings=(*findings, *program.findings))


def _untried(program: Program, gathering: Gathering, why: Untried) -> Program:
    """Say that what the program makes again is compared with nothing."""
    remade = [needed for needed in gathering.found.values() if _is_made(needed)]
    if not remade:
        return program
    names = ", ".join(f"`{needed.name}`" for needed in remade[:_MOST_NAMED])
    message = f"nobody compared what ranks make again ({names}) with the notebook: {why}"
    finding = Finding("capture.unproven", Severity.INFO, remade[0].where[0], message)
    return with_values(program, findings=(*program.findings, finding))


def _errors(program: Program) -> set[str]:
    return {finding.code for finding in program.findings if finding.severity is Severity.ERROR}


def _differences(program: Program, gathering: Gathering, replay: Replay) -> list[Difference]:
    if _errors(program):
        return []
    there = [n for n in gathering.found.values() if n.name not in gathering.measured]
    names = [n.name for n in there if _is_made(n) or n.name in replay.changed()]
    if not names:
        return []
    # What runs again may change a module once more that has the notebook's state.
    names += [n.name for n in there if _is_of_module(n)]
    kernel = _texts(names, gathering.world.seen.observer.namespace, with_classes=True)
    with Scratch("proof") as folder:
        program.write(folder)
        alone = _results(folder, names, ALONE, with_classes=True)
        other = _results(folder, names, replay.environment, with_classes=False)
    differences = []
    for name in names:
        if path := difference(kernel.get(name, {}), alone[name]):
            notebook = kernel.get(name, {}).get(path, "")
            differences.append(Difference(name, path, notebook, alone[name].get(path, ""), False))
        elif replay.is_proven(name) and name in replay.other.after:
            texts = replay.other.after[name], other[name]
            if not replay.gives_weights(name):  # every rank has the notebook's
                texts = without_weights(texts[0]), without_weights(texts[1])
            if path := difference(*texts):
                differing = texts[0].get(path, ""), texts[1].get(path, "")
                differences.append(Difference(name, path, *differing, True))
    return differences


def _is_made(needed: Needed) -> bool:
    return isinstance(needed.how, SourceCode) and needed.how.world and not needed.root


class _AtCell(Exception):
    """The program has come to its cell."""


def _results(
    folder: Path, names: list[str], environment: Mapping[str, str], *, with_classes: bool
) -> Texts:
    def work() -> Any:
        before, main = variables(), ModuleType("__main__")
        rank_program.prepare()
        os.environ.clear()
        os.environ.update({**before, **environment})
        with suppress(_AtCell):
            rank_program.run_in(main, folder, _stop, is_trial=True)
        return _texts(names, vars(main), with_classes=with_classes)

    return tried(work, SECONDS)  # type: ignore[no-any-return]


def _is_of_module(needed: Needed) -> bool:
    """Return whether it is the state of a module of the user's, `module:CFG.lr`."""
    module, _, path = needed.name.rpartition(":")
    return is_users(sys.modules.get(module)) and all(map(str.isidentifier, path.split(".")))


def _texts(names: Iterable[str], namespace: Mapping[str, Any], *, with_classes: bool) -> Texts:
    """Return the texts of names, also of the state of modules; none of what isn't there."""
    texts: Texts = {name: {} for name in names}
    modules = [name for name, _ in own_modules()]
    for name in texts:
        with suppress(KeyError, AttributeError):
            texts[name] = texts_of(
                name, _object(name, namespace), modules, with_classes=with_classes
            )
    return texts


def _object(name: str, namespace: Mapping[str, Any]) -> Any:
    module, _, path = name.rpartition(":")
    return reduce(getattr, path.split("."), sys.modules[module]) if module else namespace[name]


def _stop() -> None:
    raise _AtCell


def _finding(needed: Needed, difference: Difference) -> Finding:
    chain = needed.how.chain if isinstance(needed.how, SourceCode) else ()
    where = chain[0].statement.where if chain else needed.where[0]
    texts = [shown(t) or "nothing" for t in (difference.notebook, difference.program)]
    of = "rank 1 of 2" if difference.is_rank else "the notebook"
    if _is_of_module(needed):
        message = (
            f"`{difference.path}` is {texts[0]} in {of}, but {texts[1]} if what depends on the rank"
            " runs again: move what changes it into the cell"
        )
        return Finding("capture.process-bound", Severity.ERROR, where, message)
    message = (
        f"`{difference.path}` is {texts[0]} in {of}, but {texts[1]} if {where} runs again: move"
        f" {where} into the cell, and what has changed `{difference.name}` since"
    )
    return Finding("capture.process-bound", Severity.ERROR, needed.where[0], message)

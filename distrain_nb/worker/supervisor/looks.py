"""Looks at the ranks of a run for a few seconds: asks them for their stacks, Linux for the rest."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import MappingProxyType
from typing import AbstractSet, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.files.folder import HELD_FILE, LOOK_FILE, WHERE_FILE
from distrain_nb.worker.machine import waits
from distrain_nb.worker.machine.connections import Connections
from distrain_nb.worker.machine.gpus import Gpus
from distrain_nb.worker.supervisor.acts import SeenRank

SAMPLES, LOOKS, BETWEEN_LOOKS_S = 10, 6, 0.4
ANSWER_WITHIN_S = 3.0


class RankProcess(NamedTuple):
    """A process of a run: its number in the log, and its process id while it lives."""

    label: str
    number: int
    pid: Optional[int]
    environment: Mapping[str, str] = MappingProxyType({})  # which tells its GPU


class _View(NamedTuple):
    """What was seen of all members: twice by their own words, and often from outside."""

    looks: Sequence[Dict[int, waits.Look]]
    seconds: float
    before: Mapping[int, Dict[str, Any]]
    after: Mapping[int, Dict[str, Any]]
    busy: Mapping[int, float]
    held: AbstractSet[int]  # which have been asked for the stack of their main thread


def observe_ranks(
    folder: Path, members: Sequence[RankProcess], gpus: Optional[Gpus] = None
) -> Tuple[List[SeenRank], bool]:
    """Look for a few seconds; say too whether a collective has been completed meanwhile.

    Raises OSError where there is no /proc, or the folder can't be written.
    """
    living = {member.number: member.pid for member in members if member.pid is not None}
    begun, looks = time.monotonic(), []
    busy: Dict[int, float] = dict.fromkeys(living, 0.0)
    first = ask(folder, SAMPLES)
    threads = _own_threads(folder, living)
    for _ in range(LOOKS):
        looks.append(waits.look(list(living.values()), threads))
        for member in members if gpus else ():
            usage = gpus.of(member.environment).get("gpu %", 0.0) if gpus else 0.0
            busy[member.number] = max(busy.get(member.number, 0.0), usage)
        time.sleep(BETWEEN_LOOKS_S)
    before = answers(folder, list(living), first, begun + ANSWER_WITHIN_S)
    silent = {index: pid for index, pid in living.items() if index not in before}
    held = {index for index, pid in silent.items() if _requests_stack(folder, index, pid, looks)}
    second = ask(folder, SAMPLES)
    after = answers(folder, list(living), second, time.monotonic() + ANSWER_WITHIN_S)
    view = _View(looks, (LOOKS - 1) * BETWEEN_LOOKS_S, before, after, busy, held)
    moved = any(_completed(before[i]) != _completed(after[i]) for i in before if i in after)
    return [_seen_rank(folder, member, view) for member in members], moved


def _seen_rank(folder: Path, member: RankProcess, view: _View) -> SeenRank:
    index, pid, word = member.number, member.pid, last_answer(folder, member.number)
    if pid is None:
        return SeenRank(member.label, outcome="ended", earlier=word)
    looks = [look[pid] for look in view.looks if pid in look]
    answer = view.after.get(index)
    if answer is not None and index in view.before:
        answer = {**answer, "samples": view.before[index]["samples"] + answer["samples"]}
    is_held = answer is None and index in view.held  # else the file may be of an earlier look
    held = _text(folder / HELD_FILE.format(index)) if is_held else ""
    target = looks[-1].target if looks else ""
    peer = Connections(pid).peer(target) if target.startswith("socket:") else ""
    gpu = view.busy.get(index, 0.0)
    return SeenRank(member.label, looks, view.seconds, answer, held, word, peer=peer, gpu=gpu)


def _requests_stack(
    folder: Path, index: int, pid: int, looks: Sequence[Mapping[int, waits.Look]]
) -> bool:
    """Ask a rank that is locked out for the stack of its main thread; false if it can't be."""
    seen = [look[pid] for look in looks if pid in look]
    file = folder / HELD_FILE.format(index)
    return waits.is_locked_out(seen) and waits.request_stack(pid, file, seen[-1].call)


def _own_threads(folder: Path, living: Mapping[int, int]) -> Dict[int, int]:
    """Return the thread of each process that answers, whose own work doesn't count."""
    words = {pid: last_answer(folder, index) for index, pid in living.items()}
    return {pid: int(word["thread"]) for pid, word in words.items() if word and "thread" in word}


def ask(folder: Path, samples: int) -> str:
    """Ask the ranks of a run for that many samples of their stacks. Return the request's name."""
    asked = f"{os.getpid()}-{time.monotonic_ns()}"
    draft = folder / f"{LOOK_FILE}.{os.getpid()}.draft"
    draft.write_text(f"{asked} {samples}", encoding="ascii")
    os.replace(str(draft), str(folder / LOOK_FILE))
    return asked


def answers(folder: Path, indices: Sequence[int], asked: str, end: float) -> Dict[int, Any]:
    """Return the answers of processes by their number, those that come until then (monotonic)."""
    results: Dict[int, Any] = {}
    while True:
        for index in indices:
            word = last_answer(folder, index) if index not in results else None
            if word is not None and word.get("request") == asked:
                results[index] = word
        if len(results) == len(indices) or time.monotonic() > end:
            return results
        time.sleep(0.1)


def last_answer(folder: Path, index: int) -> Optional[Dict[str, Any]]:
    """Return what a process wrote last of where it is."""
    try:
        word = json.loads(_text(folder / WHERE_FILE.format(index)).partition("\n")[0])
    except ValueError:  # nothing yet, or it is just being written
        return None
    return word if isinstance(word, dict) else None


def _completed(word: Mapping[str, Any]) -> List[Any]:
    groups = word.get("groups") or {}
    pending = [entry.get("op_id") for entry in word.get("pending") or ()]
    return [sorted((name, str(group)) for name, group in groups.items()), pending[-1:]]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

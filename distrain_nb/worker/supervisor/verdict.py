"""Says why a run stands still: a pure function of what its ranks were seen to do for a while.

A rank that gets somewhere (its children compute, bytes flow, its stack varies) is no reason for
alarm, nor is one that sleeps or computes while nobody waits for it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from distrain_nb.worker.machine.waits import Look, is_locked_out

WAITS, BLOCKED, STOPPED, ENDED = "waits", "blocked", "stopped", "ended"
POLLS, SLEEPS, LOOPS, HOLDS = "polls", "sleeps", "loops", "holds"
COMPUTES, MOVES = "computes", "moves"
# What doesn't end by itself, as far as can be seen.
_STUCK = (BLOCKED, STOPPED, ENDED, POLLS, LOOPS, HOLDS)
# What nobody would doubt, however seldom the run prints.
_CERTAIN = (STOPPED, ENDED)

_BUSY, _GPU_BUSY = 0.2, 5.0  # of a CPU; percent of a GPU
_MOVED_BYTES_A_S = 16 << 10
_MOVED_SWITCHES_A_S = 3.0
_VARIED = 3  # functions
_OF_IO = {"read", "write", "recv", "send", "poll", "select", "epoll", "fsync", "open"}
_OF_WAITING = ("all", "barrier", "broadcast", "reduce", "gather", "scatter", "send", "recv", "wait")
_SAMPLE = re.compile(r'^\s+File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')

# Files of libraries, and what a program waits for that is in them; the innermost counts.
_WAITING_FOR = (
    ("torch/utils/data/", "a DataLoader worker"),
    ("multiprocessing/", "a child process"),
    ("concurrent/futures/process.py", "a child process"),
    ("subprocess.py", "a program that it has started"),
    ("socket.py", "an answer on a socket"),
    ("ssl.py", "an answer on a socket"),
    ("queue.py", "a queue"),
    ("concurrent/futures/", "a thread's result"),
    ("threading.py", "a lock"),
    ("selectors.py", "a socket"),
)
_BELOW = ("a DataLoader worker", "a child process", "a program that it has started")
_OF_TORCH, _OF_GROUPS = "torch/distributed/", "worker/rank/frameworks.py"
_PACKAGES = "site-packages/"
_OF_END = "worker/rank/ending.py"


@dataclass(frozen=True)
class SeenRank:
    """A rank as it was seen: `looks` over `seconds`, and what it said of itself, if it could.

    `held` is the stack that its main thread wrote because its own thread could not answer,
    `earlier` what that noted last; `outcome` is how it ended.
    """

    label: str
    looks: Sequence[Look] = ()
    seconds: float = 0.0
    answer: Optional[Dict[str, Any]] = None
    held: str = ""
    earlier: Optional[Dict[str, Any]] = None
    outcome: str = ""
    peer: str = ""
    gpu: float = 0.0  # percent of its GPU's time


@dataclass(frozen=True)
class Act:
    """What a rank does: a kind, in words, and the line of the program where it does."""

    label: str
    kind: str
    words: str
    place: str = ""
    call: Tuple[Any, ...] = ()  # of a collective: its name and the shapes of its tensors


class Verdict(NamedTuple):
    """A sentence; whether it holds whatever the run's rhythm is; whether the cause is elsewhere."""

    text: str
    certain: bool
    elsewhere: bool = False


def judge(ranks: Sequence[Act], elsewhere: bool = False) -> Optional[Verdict]:
    """Return why nothing goes on; None where something does, or may.

    With `elsewhere` ranks of other machines take part, whom this one doesn't see.
    """
    waiting = [rank for rank in ranks if rank.kind == WAITS]
    others = [rank for rank in ranks if rank.kind != WAITS]
    stopped = [rank for rank in ranks if rank.kind == STOPPED]
    if not ranks or (not stopped and any(rank.kind == MOVES for rank in ranks)):
        return None
    if not others:
        return _judge_waiting(waiting, elsewhere)
    stuck = [rank for rank in others if rank.kind in _STUCK]
    if waiting:
        return _verdict(waiting, others) if len(stuck) == len(others) or stopped else None
    living = [rank for rank in ranks if rank.kind != ENDED]
    if stopped or (living and all(rank.kind in (BLOCKED, POLLS) for rank in living)):
        return _verdict([], others)
    return None


def _judge_waiting(waiting: Sequence[Act], elsewhere: bool) -> Optional[Verdict]:
    """Judge ranks that all wait in collectives: in the same one, or in different ones."""
    calls = Counter((rank.call, rank.place) for rank in waiting)
    (common, most), *_ = calls.most_common(1)
    if len(calls) == 1:
        words = ", for ranks elsewhere" if elsewhere else ""
        return Verdict(_all_at(waiting) + words, False, elsewhere)
    if 2 * most > len(waiting):
        usual = [rank for rank in waiting if (rank.call, rank.place) == common]
        return _verdict(usual, [rank for rank in waiting if rank not in usual])
    return _verdict([], waiting)


def _verdict(waiting: Sequence[Act], others: Sequence[Act]) -> Verdict:
    same = {(rank.words, rank.place) for rank in (*waiting, *others)}
    if len(same) == 1:
        return Verdict(_all_at([*waiting, *others]), False)
    shapes = len({rank.call[:1] for rank in waiting}) != len({rank.call for rank in others})
    parts = [_group(ranks, shapes) for ranks in (*_grouped(waiting), *_grouped(others))]
    return Verdict("; ".join(parts), any(rank.kind in _CERTAIN for rank in others))


def _grouped(ranks: Sequence[Act]) -> List[List[Act]]:
    groups: Dict[Tuple[str, str, Tuple[Any, ...]], List[Act]] = {}
    for rank in ranks:
        groups.setdefault((rank.words, rank.place, rank.call), []).append(rank)
    return list(groups.values())


def _group(ranks: Sequence[Act], shapes: bool) -> str:
    rank, several = ranks[0], len(ranks) > 1
    words = re.sub(r"^(\w+)s ", r"\1 ", rank.words) if several else rank.words
    words = words.replace("has ", "have ", 1) if several and words.startswith("has ") else words
    if rank.call and shapes and len(rank.call) > 1 and rank.call[1]:
        words += f" of {rank.call[1]}"
    return f"{_names(ranks)} {words}" + (f" ({rank.place})" if rank.place else "")


def _names(ranks: Sequence[Act]) -> str:
    numbers = [rank.label[len("rank ") :] for rank in ranks if rank.label.startswith("rank ")]
    if len(ranks) == 1 or len(numbers) < len(ranks):
        return ", ".join(rank.label for rank in ranks)
    return f"ranks {', '.join(numbers)}"


def _all_at(ranks: Sequence[Act]) -> str:
    rank = ranks[0]
    who = f"all {len(ranks)} ranks are" if len(ranks) > 1 else f"{rank.label} is"
    at = f" at {rank.place}" if rank.place else ""
    return f"{who}{at}, in {rank.call[0]}" if rank.call else f"{who}{at}: it {rank.words}"


# -- what one rank does ---------------------------------------------------------------------------


def doing(rank: SeenRank) -> Act:
    """Return what a rank does, from what was seen of it from outside and what it said itself."""
    if rank.outcome:
        return Act(rank.label, ENDED, "has ended", _place_of(rank.earlier))
    if not rank.looks:
        return Act(rank.label, MOVES, "can't be seen")
    if rank.looks[-1].state in "Tt":
        place = _place_of(rank.answer or rank.earlier)
        return Act(rank.label, STOPPED, "is stopped (SIGSTOP)", place and f"last at {place}")
    if rank.answer is None:
        return _silent(rank)
    return _answering(rank, rank.answer)


def _silent(rank: SeenRank) -> Act:
    """Judge one whose thread doesn't answer: C code holds the interpreter's lock, or it begins, or
    the machine has no time for it."""
    if not is_locked_out(rank.looks):
        return Act(rank.label, MOVES, "does not answer yet")
    last = _place_of(rank.earlier)
    place = _place(_frames_of_dump(rank.held)) or (last and f"last at {last}")
    rests = rank.looks[-1].switches == rank.looks[0].switches
    if rests and not _is_busy(rank) and rank.looks[-1].call == "sleep":
        return Act(rank.label, SLEEPS, "sleeps", place)
    return Act(rank.label, HOLDS, "holds Python's lock in a call that does not return", place)


def _answering(rank: SeenRank, answer: Dict[str, Any]) -> Act:
    mains = [_main(sample) for sample in answer["samples"]]
    frames = mains[-1]
    place = _place(frames)
    pending = answer.get("pending") or ()
    library = _library(frames)
    collective = _collective(library, pending)
    meets = collective[:1] == ("init_process_group",)  # for which it polls
    if not meets and (_moves(rank) or (rank.gpu >= _GPU_BUSY and not pending)):
        return Act(rank.label, MOVES, "works", place)
    busy, in_lock = _is_busy(rank), bool(library) and library[0][0].endswith("threading.py")
    if collective and not in_lock and (meets or not busy or _on_gpu(pending)):
        return Act(rank.label, WAITS, f"waits in {collective[0]}", place, collective)
    if busy:
        return _computing(rank, mains, place)
    if not place and any(_OF_END in frame[0] for frame in frames):
        place = next(filter(None, map(_place, _others(answer))), "")
        return Act(rank.label, BLOCKED, "has come to its end, and waits for a thread", place)
    return _resting(rank, library, place)


def _computing(rank: SeenRank, mains: Sequence[Any], place: str) -> Act:
    used = rank.looks[-1].main_cpu - rank.looks[0].main_cpu
    if used < _ticks(rank) * _BUSY / 2 and not _mostly(look.state == "R" for look in rank.looks):
        return Act(rank.label, MOVES, "computes in other threads", place)
    leaves = {(*tuple(frames[0][:1]), frames[0][2]) for frames in mains if frames}
    if len(leaves) >= _VARIED:
        return Act(rank.label, MOVES, "computes", place)
    positions = {tuple(tuple(frame[:4]) for frame in frames) for frames in mains}
    if len(positions) == 1 and mains[-1][0][5]:
        return Act(rank.label, COMPUTES, "computes in one call", place)
    return Act(rank.label, LOOPS, "runs in a loop", place)


def _resting(rank: SeenRank, library: Sequence[Any], place: str) -> Act:
    call, target = rank.looks[-1].call, rank.looks[-1].target
    calls = {look.call for look in rank.looks}
    if "sleep" in calls and calls <= {"sleep", ""}:
        if rank.looks[-1].switches == rank.looks[0].switches:
            return Act(rank.label, SLEEPS, "sleeps", place)
        return Act(rank.label, POLLS, "sleeps again and again in a loop", place)
    cause = _cause(rank, library, call, target)
    if cause in _BELOW and any(child.call == "sleep" for child in rank.looks[-1].children):
        return Act(rank.label, SLEEPS, f"waits for {cause}, which sleeps", place)
    return Act(rank.label, BLOCKED, f"waits for {cause}", place)


def _cause(rank: SeenRank, library: Sequence[Any], call: str, target: str) -> str:
    causes = [cause for frame in library for part, cause in _WAITING_FOR if part in frame[0]]
    below = [cause for cause in causes if cause in _BELOW]
    cause = (below[-1:] or causes or [""])[0]
    if cause in _BELOW:
        return cause + _about_children(rank.looks[-1])
    if target.startswith("socket:"):
        return "an answer on a socket" + (f" from {rank.peer}" if rank.peer else "")
    if call in ("read", "write", "open", "fsync") and target.startswith(("/", "pipe:")):
        is_input = target.startswith(("pipe:", "/dev/"))
        return "input that nobody gives" if is_input else target
    if call == "flock":
        return f"a lock on the file {target}" if target else "a lock on a file"
    if call == "open":
        return "a file to open"
    if not cause and library and _PACKAGES in library[0][0]:
        package = library[0][0].rpartition(_PACKAGES)[2].partition("/")[0]
        return f"{library[0][2]}() of {package}"
    return cause or {"futex": "a lock", "wait": "a child process"}.get(call, "what can't be seen")


def _about_children(look: Look) -> str:
    for state, words in (("Z", " that has died"), ("T", " that is stopped (SIGSTOP)")):
        if any(child.state == state for child in look.children):
            return words
    return "" if look.children else " that has died"


def _moves(rank: SeenRank) -> bool:
    """Say whether a rank gets on, in its children or by its files and sockets."""
    first, last = rank.looks[0], rank.looks[-1]
    if last.below - first.below > _ticks(rank) * _BUSY / 2:
        return True
    if _mostly(any(child.state == "R" for child in look.children) for look in rank.looks):
        return True
    if last.io - first.io > _MOVED_BYTES_A_S * rank.seconds:
        return True
    calls = {look.call for look in rank.looks} - {""}
    turns = (last.switches - first.switches) / max(rank.seconds, 0.1)
    return bool(calls) and calls <= _OF_IO and turns > _MOVED_SWITCHES_A_S


def _ticks(rank: SeenRank) -> float:
    return 100.0 * rank.seconds


def _is_busy(rank: SeenRank) -> bool:
    """Say whether it computes, or would if it had a CPU: others may take most of the time."""
    used = rank.looks[-1].cpu - rank.looks[0].cpu
    return used > _ticks(rank) * _BUSY or _mostly(look.state == "R" for look in rank.looks)


def _mostly(facts: Iterable[bool]) -> bool:
    values = list(facts)
    return 2 * sum(values) > len(values)


def _collective(library: Sequence[Any], pending: Sequence[Dict[str, Any]]) -> Tuple[Any, ...]:
    """Return the collective that a stack is in, and its shapes; empty for none."""
    names = [
        frame[2]
        for frame in library
        if (_OF_TORCH in frame[0] or _OF_GROUPS in frame[0])
        and frame[2].startswith((*_OF_WAITING, "init_", "monitored"))
    ]
    name = names[-1] if names else ""
    if pending:
        last = pending[-1]
        recorded = str(last.get("profiling_name", "")).partition(":")[2].split(" ")[0]
        shapes = " and ".join("×".join(map(str, size)) for size in last.get("input_sizes", ()))
        return (name or recorded, shapes)
    return (name, "") if name else ()


def _on_gpu(pending: Sequence[Dict[str, Any]]) -> bool:
    return bool(pending) and "nccl" in str(pending[-1].get("profiling_name"))


def _main(sample: Sequence[Dict[str, Any]]) -> Any:
    return next((thread["frames"] for thread in sample if thread["main"]), [])


def _others(answer: Dict[str, Any]) -> List[Any]:
    return [thread["frames"] for thread in answer["samples"][-1] if not thread["main"]]


def _library(frames: Sequence[Any]) -> List[Any]:
    """Return the frames of libraries that the innermost line of the program has called."""
    first = next((n for n, frame in enumerate(frames) if frame[4]), len(frames))
    return list(frames[:first])


def _place(frames: Sequence[Any]) -> str:
    frame = next((frame for frame in frames if frame[4]), None)
    return f"{frame[0]}, line {frame[1]}" if frame else ""


def _place_of(word: Optional[Dict[str, Any]]) -> str:
    """Return the line that a rank noted last."""
    if not word:
        return ""
    if word.get("ended"):
        return _place([word["ended"]])
    return _place(_main(word["samples"][-1]))


def _frames_of_dump(text: str) -> List[Any]:
    """Return the frames of the main thread that `faulthandler` has written."""
    lines = map(_SAMPLE.match, text.splitlines())
    return [
        (m["file"], int(m["line"]), m["function"], -1, m["file"].startswith("Cell "), False)
        for m in lines
        if m
    ]

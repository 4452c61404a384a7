"""What a rank does, by what was seen of it for a while: it waits, computes, sleeps or is stuck.

A rank makes progress if its children compute, bytes flow, its stack varies, or a `for` loop goes
on. A rank that waits for a process elsewhere, such as a server, may get its answer at any time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from distrain_nb.worker.machine.connections import ITSELF, OUTSIDE
from distrain_nb.worker.machine.waits import Look, is_locked_out
from distrain_nb.worker.rank.stacks import WHILE

WAITS, BLOCKED, STOPPED, ENDED = "waits", "blocked", "stopped", "ended"
POLLS, SLEEPS, LOOPS, HOLDS = "polls", "sleeps", "loops", "holds"
ASKS = "asks"  # somebody outside of the run
COMPUTES, MOVES = "computes", "moves"

_BUSY, _GPU_BUSY = 0.2, 5.0  # of a CPU; percent of a GPU
_MOVED_BYTES_A_S = 16 << 10
_MOVED_SWITCHES_A_S = 3.0
_VARIED, _CALLED = 3, 2  # functions; places of the program that call C code
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
_OF_TORCH, _OF_GROUPS = "torch/distributed/", "worker/rank/torch_groups.py"
_PACKAGES = "site-packages/"
_OF_WORKER, _OF_END = "distrain_nb/worker/", "worker/rank/ending.py"


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
    frames = mains[-1]["frames"]
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
    return _resting(rank, answer, library, place)


def _computing(rank: SeenRank, mains: Sequence[Dict[str, Any]], place: str) -> Act:
    """Judge one that computes: only a loop without an end in sight, that does nothing, is odd.

    A `for` loop ends with what it goes through, and a call of C code with its work. An evaluation
    calls many functions; a loop that waits for a flag calls none, or always the same.
    """
    used = rank.looks[-1].main_cpu - rank.looks[0].main_cpu
    if used < _ticks(rank) * _BUSY / 2 and not _mostly(look.state == "R" for look in rank.looks):
        return Act(rank.label, MOVES, "computes in other threads", place)
    leaves = [main["frames"][0] for main in mains if main["frames"]]
    functions = {(leaf[0], leaf[2]) for leaf in leaves}
    calls = {tuple(leaf[:4]) for leaf in leaves if leaf[5]}
    if len(functions) >= _VARIED or len(calls) >= _CALLED:
        return Act(rank.label, MOVES, "computes", place)
    if not _mostly(main.get("loop") == WHILE for main in mains):
        return Act(rank.label, COMPUTES, "computes", place)
    if _mostly(leaf[5] for leaf in leaves):
        return Act(rank.label, COMPUTES, "computes in one call", place)
    return Act(rank.label, LOOPS, "runs in a loop", place)


def _resting(rank: SeenRank, answer: Dict[str, Any], library: Sequence[Any], place: str) -> Act:
    last, calls = rank.looks[-1], {look.call for look in rank.looks}
    rests = last.switches == rank.looks[0].switches
    if "sleep" in calls and calls <= {"sleep", ""}:
        if rests:
            return Act(rank.label, SLEEPS, "sleeps", place)
        return Act(rank.label, POLLS, "waits in a loop of short sleeps", place)
    cause = _cause(rank, library, last.call, last.target)
    if cause in _BELOW:
        if any(child.call == "sleep" for child in last.children):
            return Act(rank.label, SLEEPS, f"waits for {cause}, which sleeps", place)
        if any(child.is_outside for child in last.children):
            return Act(rank.label, ASKS, f"waits for {cause}, which waits for an answer", place)
    elif _asks_outside(last, answer, library):
        return Act(rank.label, ASKS, f"waits for {cause}", place)
    elif rests and last.is_limited and not last.answerer and not _is_native(library):
        return Act(rank.label, SLEEPS, f"waits for {cause}, for a limited time", place)
    return Act(rank.label, BLOCKED, f"waits for {cause}", place)


def _asks_outside(last: Look, answer: Dict[str, Any], library: Sequence[Any]) -> bool:
    """Say whether somebody may answer who isn't seen: outside of the run, or in another thread."""
    if last.answerer == ITSELF:
        return any(map(_is_active, _others(answer)))
    if last.answerer or last.call == "futex":
        return last.answerer == OUTSIDE or last.threads_outside
    # Names are looked up by datagrams, and some servers listen at a file: no connection of TCP.
    return any(frame[0].endswith(("socket.py", "ssl.py")) for frame in library)


def _is_active(frames: Sequence[Any]) -> bool:
    """Say whether a thread of Python may do something: it isn't ours and waits for no other."""
    idle = not frames or frames[0][0].endswith(("threading.py", "queue.py"))
    return not idle and any(_OF_WORKER not in frame[0] for frame in frames)


def _is_native(library: Sequence[Any]) -> bool:
    return bool(library) and _PACKAGES in library[0][0]


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
    if call == "open":
        return "a file to open"
    if call == "flock":
        return f"a lock on the file {target}" if target else "a lock on a file"
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
    # One that waits for a server wakes up when something comes.
    enough = 0.0 if last.answerer == OUTSIDE else _MOVED_SWITCHES_A_S
    if calls and calls <= _OF_IO and turns > enough:
        return True
    before = {child.pid: child.switches for child in first.children if child.is_outside}
    return any(
        child.is_outside and child.switches > before.get(child.pid, child.switches)
        for child in last.children
    )


def _ticks(rank: SeenRank) -> float:
    return 100.0 * rank.seconds


def _is_busy(rank: SeenRank) -> bool:
    """Say whether it computes, or would if it had a CPU: others may take most of the time."""
    used = rank.looks[-1].cpu - rank.looks[0].cpu
    if used > _ticks(rank) * _BUSY:
        return True
    return _mostly(look.state == "R" or look.threads_run for look in rank.looks)


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


def _main(sample: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    return next((thread for thread in sample if thread["main"]), {"frames": []})


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
    return _place(_main(word["samples"][-1])["frames"])


def _frames_of_dump(text: str) -> List[Any]:
    """Return the frames of the main thread that `faulthandler` has written."""
    lines = map(_SAMPLE.match, text.splitlines())
    return [
        (m["file"], int(m["line"]), m["function"], -1, m["file"].startswith("Cell "), False)
        for m in lines
        if m
    ]

"""Facts of the collectives that this rank has made, from PyTorch's flight recorder.

It keeps the last 2,000 with their lines, and costs nothing beyond what it costs anyway. A thread
of its own reads it at doubling intervals, and once more when the group or the program ends. The
recorder's dump is a private call of PyTorch, tried with 2.13; without it there are no such facts.
"""

from __future__ import annotations

import _thread
import functools
import pickle
import sys
import time
from contextlib import contextmanager
from math import prod
from threading import get_ident
from types import ModuleType
from typing import Any, Dict, Iterator, List, Tuple

from distrain_nb.worker.facts.record import COLLECTIVES, RECORD, spans
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.stacks import place, place_in
from distrain_nb.worker.rank.weights import WATCH

FIRST_LOOK_S = 2.0
_FIRST_CALLS, _LAST_CALLS, _LAST_AT_END = 48, 48, 256
_DUMPS = ("_dump_fr_trace", "_dump_nccl_trace")
_MOST_TEXTS = 256
_BACKWARD, _JOIN = "_engine_run_backward", "torch/distributed/algorithms/join.py"

_FLOATS = ("Float", "Double", "Half", "BFloat16")
_MARKED = ("all_reduce", "broadcast")  # which the recorder calls so too

Call = Tuple[int, str, int, str, str, str, str, bool]


class Exchanges:
    """What has been noted of this rank's collectives."""

    def __init__(self) -> None:
        self._generation = 0  # groups that were destroyed count anew
        self._has_ended = False  # a group, and none has begun since
        self._noted = -1  # the number of the last record
        self._looks = False
        self.large_ns: List[int] = []  # the first and last that the program may exchange weights by
        self._texts: Dict[Tuple[Any, ...], str] = {}  # of marks

    def skip(self) -> None:
        """Pass over what there is."""
        entries = _entries()
        self._noted = int(entries[-1]["record_id"]) if entries else -1

    def look(self) -> None:
        """Look now and then, in a thread of its own."""
        self._has_ended = False
        if not self._looks:
            self._looks = True
            _thread.start_new_thread(_look_now_and_then, (self,))

    def note(self, most: int) -> None:
        """Note the collectives since the last time: the first of their group, and the last."""
        entries = [entry for entry in _entries() if int(entry["record_id"]) > self._noted]
        if not entries:
            return
        self._noted = int(entries[-1]["record_id"])
        recent = {int(entry["record_id"]) for entry in entries[-most:]}
        shown = [
            entry
            for entry in entries
            if int(entry["record_id"]) in recent or int(entry["collective_seq_id"]) <= _FIRST_CALLS
        ]
        calls = [self._call(entry) for entry in shown if _is_compared(entry)]
        large, since = WATCH.largest, WATCH.began_ns
        times = [
            int(entry["time_created_ns"])
            for entry in entries
            if since and int(entry["time_created_ns"]) > since and _is_by_hand(entry, large)
        ]
        if times:
            every = [*self.large_ns, *times]
            self.large_ns = [min(every), max(every)]
        RECORD.note(COLLECTIVES, groups=_groups(), calls=calls, large=bool(times))

    def _call(self, entry: Dict[str, Any]) -> Call:
        frames = entry.get("frames") or ()
        return (
            self._generation,
            str(entry["process_group"][0]),
            int(entry["collective_seq_id"]),
            str(entry["profiling_name"]).partition(":")[2].partition(" ")[0],
            " and ".join("×".join(map(str, size)) or "one" for size in entry["input_sizes"]),
            " and ".join(map(str, entry.get("input_dtypes") or ())).lower(),
            place_in(frames),
            any(frame.get("name") == _BACKWARD for frame in frames),
        )

    def mark(self, operation: str, tensor: Any, group: Any) -> None:
        """Mark the collective that begins: a rank that gloo aborts in it leaves no other word."""
        c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
        group = group if group is not None else c10d._get_default_group()
        if not c10d._world.pg_coalesce_state.get(group):  # else it becomes part of another
            key = (id(group), operation, tensor.shape, place())
            text = self._texts.get(key)
            if text is None:
                size = "×".join(map(str, tensor.shape)) or "one"
                text = self._text(group, f"{operation}\t{size}\t{key[-1]}\t0")
                if len(self._texts) == _MOST_TEXTS:
                    self._texts.clear()
                self._texts[key] = text
            RECORD.mark(group._get_sequence_number_for_group() + 1, text)

    def of_gradients(self, group: Any, line: str) -> str:
        """Return the mark of the exchange that a module's backward pass begins."""
        return self._text(group, f"all_reduce\t\t{line}\t1")

    def _text(self, group: Any, rest: str) -> str:
        c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
        return f"{self._generation}\t{c10d._world.pg_names.get(group, '')}\t{rest}"

    def group_ends(self) -> None:
        """Note what there is before a group goes, whose numbers begin anew."""
        self.note(_LAST_AT_END)
        self._generation += 1
        self._has_ended = True
        self._texts.clear()

    def end(self) -> None:
        """Note the last collectives. Where there are none, say so if it can be known."""
        distributed: Any = sys.modules.get("torch.distributed")
        if not self._has_ended or distributed.is_initialized():
            self.note(_LAST_AT_END)  # each dump takes as long as several steps
        if self._noted < 0 and _has_recorder():
            RECORD.note(COLLECTIVES, groups={}, calls=[], large=False)


EXCHANGES = Exchanges()


def begin() -> None:
    """Follow the collectives of a run from its beginning. Those of an earlier one don't count."""
    EXCHANGES.__init__()  # type: ignore[misc]
    if RECORD.number > 1:
        safely_noted(EXCHANGES.skip)
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is not None and c10d.is_initialized():
        EXCHANGES.look()


def install() -> None:
    """Have PyTorch tell of collectives, once for all runs of this process."""
    on_import(
        {
            "torch.distributed.distributed_c10d": _change,
            "torch.distributed._functional_collectives": _keep_compiled,
        }
    )


def _change(module: Any) -> None:
    init, destroy = module.init_process_group, module.destroy_process_group

    @functools.wraps(init)
    def init_process_group(*arguments: Any, **named: Any) -> None:
        init(*arguments, **named)
        if get_ident() == RECORD.thread:
            EXCHANGES.look()

    @functools.wraps(destroy)
    def destroy_process_group(*arguments: Any, **named: Any) -> None:
        if get_ident() == RECORD.thread:
            safely_noted(EXCHANGES.group_ends)
        destroy(*arguments, **named)

    package = sys.modules.get("torch.distributed")
    for name in _MARKED:
        marked = _marked(module, name)
        setattr(module, name, marked)
        if hasattr(package, name):
            setattr(package, name, marked)
    for function in (init_process_group, destroy_process_group):
        setattr(module, function.__name__, function)
        if hasattr(package, function.__name__):  # it was imported before
            setattr(package, function.__name__, function)


def _keep_compiled(module: Any) -> None:
    """Have PyTorch's compiler put into graphs what it does in place of the plain collectives."""
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    instead = module.traceable_collective_remaps
    for name in _MARKED:
        marked = getattr(c10d, name)
        plain = getattr(marked, "__wrapped__", None)
        if plain in instead:
            instead[marked] = instead[plain]


def _marked(module: Any, name: str) -> Any:
    """Return a collective that marks its begin."""
    run = getattr(module, name)

    @functools.wraps(run)
    def collective(*arguments: Any, **named: Any) -> Any:
        if get_ident() == RECORD.thread:
            try:
                tensor = arguments[0] if arguments else named["tensor"]
                group = arguments[2] if len(arguments) > 2 else named.get("group")
                if not tensor.is_sparse:
                    EXCHANGES.mark(name, tensor, group)
            except Exception:  # of another version; what is wrong with the call, PyTorch says
                pass
        return run(*arguments, **named)

    return collective


def _look_now_and_then(looked_at: Exchanges) -> None:
    """Look at doubling intervals for as long as this run is recorded."""
    pause, run = FIRST_LOOK_S, RECORD.number
    while RECORD.thread and RECORD.number == run:
        time.sleep(pause)
        pause *= 2
        if RECORD.thread and RECORD.number == run:
            safely_noted(lambda: looked_at.note(_LAST_CALLS))


def safely_noted(note: Any) -> None:
    """Call what notes collectives. A recorder of another version has other fields: it is left."""
    try:
        note()
    except Exception:
        pass


def _has_recorder() -> bool:
    c10d = sys.modules.get("torch._C._distributed_c10d")
    return any(hasattr(c10d, name) for name in _DUMPS)


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Keep PyTorch from importing its compiler for the frames of a dump: it looks for
    `torch._inductor.codecache`, and to look imports it, for 3 seconds in each rank (2.13)."""
    names = vars(sys.modules["torch"])
    if "_inductor" in names:
        yield
        return
    instead = names["_inductor"] = ModuleType("torch._inductor")
    try:
        yield
    finally:
        if names.get("_inductor") is instead:
            del names["_inductor"]


def _entries() -> List[Dict[str, Any]]:
    """Return what the recorders have, of all backends, the oldest first."""
    c10d = sys.modules.get("torch._C._distributed_c10d")
    dumps = [getattr(c10d, name, None) for name in _DUMPS]
    with _without_compiler():
        entries = [
            entry
            for dump in dumps
            if dump is not None
            for entry in pickle.loads(dump(True, True, False)).get("entries", ())
        ]
    return sorted(entries, key=lambda entry: int(entry["record_id"]))


def _groups() -> Dict[str, str]:
    """Return the ranks of each group that there is, by its name."""
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    names = dict(c10d._world.pg_names)
    return {str(name): spans(c10d.get_process_group_ranks(group)) for group, name in names.items()}


def _is_compared(entry: Dict[str, Any]) -> bool:
    """Return whether all ranks make this collective in the same way. A rank that has ended its
    loop takes part, within `Join`, in what the others exchange."""
    files = (str(frame.get("filename")) for frame in entry.get("frames") or ())
    return not entry.get("is_p2p") and not any(file.endswith(_JOIN) for file in files)


def _is_by_hand(entry: Dict[str, Any], large: int) -> bool:
    """Return whether a collective may have weights or gradients, so many numbers, which the program
    exchanges itself: a state of a random generator, in bytes, is none of these, a pickled object
    may be. What DDP exchanges has no line, or is in a backward pass."""
    if sum(prod(size) for size in entry["input_sizes"]) < large:
        return False
    frames = entry.get("frames") or ()
    if not place_in(frames) or any(frame.get("name") == _BACKWARD for frame in frames):
        return False
    is_object = any("_object" in str(frame.get("name")) for frame in frames)
    types = entry.get("input_dtypes") or ["Float"]
    return is_object or any(str(name) in _FLOATS for name in types)

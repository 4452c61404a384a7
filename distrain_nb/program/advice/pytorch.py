"""What a program with DistributedDataParallel or FSDP must do besides wrapping its model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from distrain_nb.program.advice.data import data
from distrain_nb.program.advice.reading import last
from distrain_nb.program.advice.sharded import WRAPS, saved, sharded, stale
from distrain_nb.program.advice.training import is_cared_for, pinned, uses_cuda, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

_STARTS = ("init_process_group", "init_device_mesh", "init_distributed")
_SET_UP = re.compile(r"set_?up|init.*(dist|process|group|torch)|(dist|ddp).*init", re.I)


def pytorch(code: Code) -> Iterator[Note]:
    """What is missing around DDP and FSDP; nothing where a library sees to it."""
    wraps = [c for c in code.called("DistributedDataParallel", *WRAPS) if code.runs(c)]
    if not wraps or is_cared_for(code):
        return
    first = wraps[0].lineno
    if not (code.called(*_STARTS) or _starts_elsewhere(code)):
        yield warning(
            "ddp.process-group",
            first,
            "no process group is started: before this write torch.distributed.init_process_group()",
        )
    yield from _device(code, first)
    yield from data(code)
    yield from saved(code)
    yield from sharded(code)
    yield from stale(code)


def _starts_elsewhere(code: Code) -> bool:
    """Whether an imported function is called that seems to start the group."""
    names = [last(code.name(call.func)) for call in code.calls if code.body_of(call) is None]
    return any(map(_SET_UP.search, names))


def _device(code: Code, line: int) -> Iterator[Note]:
    way = pinned(code) if uses_cuda(code) else "local"
    write = 'torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))'
    if way == "rank":
        yield warning(
            "ddp.device",
            line,
            "GPUs are chosen by rank, which goes beyond the GPUs of a second machine: "
            f"use the local rank: {write}",
        )
    elif not way:
        yield warning("ddp.device", line, f"every rank uses the same GPU: before this, {write}")

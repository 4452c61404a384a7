"""Programs that use all GPUs of a machine from one process: more processes would be too many."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import keyword
from distrain_nb.program.advice.training import info, is_cared_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

# What shares a model or its gradients among processes, each with a GPU of its own.
_PER_PROCESS = (
    *("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"),
    *("init_process_group", "init_device_mesh", "init_distributed"),
)
_GPU = re.compile(r"cuda:\d+")
_FASTER = (
    "DistributedDataParallel, with a process for each GPU, is faster: it does not copy the model "
    "to every GPU at each step, and its GPUs don't wait for one Python interpreter"
)


def one_process(code: Code) -> Iterator[Note]:
    """An info where one process uses several GPUs; nothing where each has a process of its own."""
    if code.called(*_PER_PROCESS) or code.uses("horovod") or is_cared_for(code):
        return
    copied = [c for c in code.called("DataParallel", "data_parallel") if code.runs(c)]
    spread = [c for c in code.calls if _spreads(keyword(c, "device_map")) and code.runs(c)]
    gpus = sorted({text for text in code.texts if _GPU.fullmatch(text)})
    if copied:
        yield _note(copied[0], f"DataParallel uses all GPUs of a machine. {_FASTER}")
    elif spread:
        yield _note(spread[0], "device_map spreads one model over all GPUs of a machine")
    elif len(gpus) > 1:
        yield _note(_where(code, gpus[1]), f"{' and '.join(gpus)} are used side by side")


def _where(code: Code, text: str) -> ast.Constant:
    constants = (node for node in code.nodes if isinstance(node, ast.Constant))
    return next(node for node in constants if node.value == text)


def _note(node: ast.expr, why: str) -> Note:
    return info("one-process", node.lineno, f"one process a replica is enough: {why}")


def _spreads(value: ast.expr | None) -> bool:
    """Whether a `device_map` puts parts of a model on several GPUs."""
    if isinstance(value, ast.Constant):
        return value.value in ("auto", "balanced", "balanced_low_0", "sequential")
    return isinstance(value, ast.Dict) and len({*map(ast.dump, value.values)}) > 1


def without_nccl(code: Code) -> str:
    """The way to exchange gradients that a program names, where it is not NCCL."""
    for call in code.called("init_process_group"):
        backend = keyword(call, "backend") or next(iter(call.args), None)
        named = backend.value if isinstance(backend, ast.Constant) else None
        if isinstance(named, str) and "nccl" not in named.lower():
            return named
    return "RING" if code.says("RING") and not code.says("NCCL") else ""

"""Which processes a program has: one for all GPUs of a machine, or several that exchange
gradients."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import keyword, last
from distrain_nb.program.advice.training import info, is_cared_for
from distrain_nb.program.advice.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

# What shares a model or its gradients among processes, each with a GPU of its own.
_PER_PROCESS = (
    *("DistributedDataParallel", "FullyShardedDataParallel", "fully_shard"),
    *("init_process_group", "init_device_mesh", "init_distributed"),
)
# What makes a process one of several, and names of options that say by what they exchange.
_JOINS = ("init_process_group", "init_distributed", "InitProcessGroupKwargs")
_BACKENDS = ("ddp_backend", "process_group_backend")
_GPU = re.compile(r"cuda:\d+")
_FASTER = (
    "DistributedDataParallel, with a process for each GPU, is faster: it does not copy the model "
    "to every GPU at each step, and its GPUs don't wait for one Python interpreter"
)


def one_process(code: Code) -> Iterator[Note]:
    """Yield an info where one process uses several GPUs; nothing where each has a process of its
    own."""
    if code.called(*_PER_PROCESS) or code.uses("horovod") or is_cared_for(code):
        return
    copied = [c for c in code.called("DataParallel", "data_parallel") if code.runs(c)]
    spread = [c for c in code.calls if _spreads(keyword(c, "device_map")) and code.runs(c)]
    gpus = sorted({text for text in code.texts if _GPU.fullmatch(text)})
    why, line = "", 0
    if copied:
        why, line = f"DataParallel uses all GPUs of a machine. {_FASTER}", copied[0].lineno
    elif spread:
        why, line = "device_map spreads one model over all GPUs of a machine", spread[0].lineno
    elif len(gpus) > 1:
        constants = (node for node in code.nodes if isinstance(node, ast.Constant))
        line = next(node.lineno for node in constants if node.value == gpus[1])
        why = f"{' and '.join(gpus)} are used side by side"
    if why:
        yield info("one-process", line, f"one process a replica is enough: {why}")


def _spreads(value: ast.expr | None) -> bool:
    """Return whether a `device_map` puts parts of a model on several GPUs."""
    if isinstance(value, ast.Constant):
        return value.value in ("auto", "balanced", "balanced_low_0", "sequential")
    return isinstance(value, ast.Dict) and len({*map(ast.dump, value.values)}) > 1


def without_nccl(code: Code) -> str:
    """Return the way to exchange gradients that a program names, where it is certainly not NCCL."""
    values = Values(code)
    given = [value for call in code.calls if code.runs(call) for value in _backends(code, call)]
    named = {_text(code, node) for value in given for node in (*values.nodes(value),) or (None,)}
    if named and not any(text is None or "nccl" in text.lower() for text in named):
        return " or ".join(sorted(filter(None, named)))
    return "RING" if code.says("RING") and not code.says("NCCL") else ""


def _backends(code: Code, call: ast.Call) -> Iterator[ast.expr | None]:
    """What a call names as the backend of the processes, None where it leaves that to PyTorch."""
    if last(code.name(call.func)) in _JOINS:
        yield keyword(call, "backend", "dist_backend") or next(iter(call.args), None)
    elif named := keyword(call, *_BACKENDS):
        yield named


def _text(code: Code, node: ast.expr | None) -> str | None:
    """Return a backend's name; None for what the code doesn't tell."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Attribute):
        return node.attr.lower() if code.name(node).endswith(f"Backend.{node.attr}") else None
    return None

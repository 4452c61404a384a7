"""Which processes a program has: one for all GPUs of a machine, or several that exchange
gradients."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import keyword, last
from distrain_nb.program.advice.training import Note, info, is_cared_for
from distrain_nb.program.advice.values import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code

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
    values, named = Values(code), set[str]()  # "" where the code leaves it to PyTorch, or is silent
    for call in filter(code.runs, code.calls):
        joins = last(code.name(call.func)) in _JOINS
        backend = keyword(call, *_BACKENDS)
        if joins:
            backend = keyword(call, "backend", "dist_backend") or next(iter(call.args), None)
        if joins or backend:
            named |= {_text(code, node) for node in (*values.nodes(backend),) or (None,)}
    if named and not any(text == "" or "nccl" in text.lower() for text in named):
        return " or ".join(sorted(named))
    return "RING" if code.says("RING") and not code.says("NCCL") else ""


def _text(code: Code, node: ast.expr | None) -> str:
    """Return a backend's name; empty for what the code doesn't tell."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    is_backend = isinstance(node, ast.Attribute) and code.name(node.value).endswith("Backend")
    return getattr(node, "attr", "").lower() if is_backend else ""

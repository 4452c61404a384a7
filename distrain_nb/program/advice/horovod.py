"""The six changes that Horovod asks of a training program: which of them are missing."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.program.advice.flow import SIZE, Flow
from distrain_nb.program.advice.reading import given, keyword, last
from distrain_nb.program.advice.training import (
    info,
    is_cared_for,
    optimizers,
    pinned,
    saves,
    trains,
    uses_cuda,
    warning,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

_TF1 = ("Session", "ConfigProto", "MonitoredTrainingSession", "Estimator", "train_and_evaluate")
_SCHEDULES = ("LearningRateWarmupCallback", "LearningRateScheduleCallback", "LearningRateScheduler")
_AVERAGES = (
    "allreduce",
    "allreduce_",
    "allreduce_async_",
    "grouped_allreduce",
    "DistributedTrainer",
)
_BROADCASTS = (
    *("BroadcastGlobalVariablesHook", "BroadcastGlobalVariablesCallback", "broadcast_variables"),
    *("broadcast_global_variables", "broadcast_parameters", "broadcast_object"),
    *("TorchState", "KerasState", "TensorFlowKerasState", "TensorFlowState"),
)

_PIN = {
    "torch": "torch.cuda.set_device(hvd.local_rank())",
    "tf1": "config.gpu_options.visible_device_list = str(hvd.local_rank())",
    "tf2": "tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')",
}
_PIN["keras"] = _PIN["tf2"]
_WRAP = {
    "torch": "optimizer = hvd.DistributedOptimizer("
    "optimizer, named_parameters=model.named_parameters())",
    "tf1": "optimizer = hvd.DistributedOptimizer(optimizer)",
    "tf2": "tape = hvd.DistributedGradientTape(tape)",
    "keras": "optimizer = hvd.DistributedOptimizer(optimizer)",
}
_BROADCAST = {
    "torch": "hvd.broadcast_parameters(model.state_dict(), root_rank=0) and "
    "hvd.broadcast_optimizer_state(optimizer, root_rank=0) before the first step",
    "tf1": "hvd.BroadcastGlobalVariablesHook(0) among the session's hooks, "
    "or run hvd.broadcast_global_variables(0) after the variables are initialized",
    "tf2": "hvd.broadcast_variables(model.variables, root_rank=0), "
    "and the optimizer's likewise, after the first step",
    "keras": "hvd.callbacks.BroadcastGlobalVariablesCallback(0) among the callbacks of fit",
}


def horovod(code: Code) -> Iterator[Note]:
    """The changes that a program with Horovod lacks; nothing for one that does not train."""
    uses = [call for call in code.calls if _needs_start(code.name(call.func))]
    if not (uses or code.uses("horovod")) or is_cared_for(code):
        return
    imported = [line for name, line in code.modules.items() if name.startswith("horovod")]
    start = min([*imported, *(call.lineno for call in uses)])
    needed = code.runs(uses[0]) if uses else trains(code)
    inits = code.called("init", start="horovod")
    if needed and not inits:
        yield warning("horovod.init", start, "Horovod is not started: put hvd.init() after imports")
    if trains(code) and not code.uses("horovod.mxnet"):
        kind = _kind(code)
        yield from _device(code, kind, inits[0].lineno if inits else start)
        yield from _learning_rate(code)
        yield from _optimizer(code, kind, start)
        yield from _broadcast(code, kind, start)
        yield from _checkpoint(code, kind)


def _needs_start(name: str) -> bool:
    """Whether a function is one of a framework's Horovod, not of what launches or reads data."""
    elsewhere = ("horovod.spark", "horovod.ray", "horovod.runner", "horovod.run")
    return name.startswith("horovod") and not name.startswith(elsewhere) and ".data." not in name


def _kind(code: Code) -> str:
    """Which of the four forms of the six changes a program needs."""
    if code.uses("horovod.torch") or (code.uses("torch") and not code.uses("tensorflow")):
        return "torch"
    if code.uses("tensorflow.compat.v1") or any(_is_tf1(code.name(c.func)) for c in code.calls):
        return "tf1"
    keras = code.uses("horovod.keras") or code.uses("horovod.tensorflow.keras")
    return "keras" if keras or code.called("fit", "compile") else "tf2"


def _is_tf1(name: str) -> bool:
    action = last(name)
    old_optimizer = ".train." in name and action.endswith("Optimizer")
    return name.startswith("tensorflow") and (action in _TF1 or old_optimizer)


def _device(code: Code, kind: str, line: int) -> Iterator[Note]:
    elsewhere = code.uses("horovod.spark") or (kind == "torch" and not uses_cuda(code))
    way = "local" if elsewhere else pinned(code)
    if way == "rank":
        yield warning(
            "horovod.device",
            line,
            "GPUs are chosen by rank(), which goes beyond the GPUs of a second machine: "
            f"use local_rank(): {_PIN[kind]}",
        )
    elif not way:
        yield warning(
            "horovod.device",
            line,
            f"every process uses the same GPUs: after hvd.init() write {_PIN[kind]}",
        )


def _learning_rate(code: Code) -> Iterator[Note]:
    made = optimizers(code)
    if not made or code.says("Adasum"):
        return
    size = Flow(code, (SIZE,), through=True)
    rates = [node for call in made for node in given(call)]
    rates += [n for call in code.calls if _is_schedule(code.name(call.func)) for n in given(call)]
    rates += [node.value for node in code.nodes if _sets_rate(node)]  # type: ignore[attr-defined]
    if not any(map(size.holds, rates)) and not code.called("LearningRateWarmupCallback"):
        yield info(
            "horovod.learning-rate",
            made[0].lineno,
            "the learning rate is not scaled: as every step sees hvd.size() batches, "
            "multiply it by hvd.size()",
        )


def _is_schedule(name: str) -> bool:
    action = last(name)
    decays = "decay" in action.lower() or "Schedule" in action
    return action in _SCHEDULES or decays or ".lr_scheduler." in name or action.endswith("LR")


def _sets_rate(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        target = ast.unparse(node.targets[0])
    elif isinstance(node, ast.AugAssign):
        target = ast.unparse(node.target)
    else:
        return False
    return "learning_rate" in target or target.endswith(("lr", "['lr']"))


def _optimizer(code: Code, kind: str, start: int) -> Iterator[Note]:
    wraps = ("DistributedOptimizer", "DistributedGradientTape", "DistributedAdasumOptimizer")
    if not code.called(*wraps, start="horovod") and not _averages_itself(code):
        yield warning(
            "horovod.optimizer",
            _first(optimizers(code) or code.called("GradientTape"), start),
            f"gradients are not averaged, each process trains for itself: write {_WRAP[kind]}",
        )


def _averages_itself(code: Code) -> bool:
    """Whether gradients are handed to an all-reduce, as metrics may be too."""
    return any(
        "grad" in ast.unparse(code.innermost(call, ast.stmt) or call)
        for call in code.called(*_AVERAGES, start="horovod")
    )


def _broadcasts(code: Code) -> bool:
    """Whether weights are broadcast: with their own functions, or one by one."""
    loops = (ast.For, ast.ListComp, ast.GeneratorExp)
    one_by_one = code.called("broadcast", "broadcast_", start="horovod")
    return bool(code.called(*_BROADCASTS, start="horovod")) or any(
        isinstance(outer, loops) for call in one_by_one for outer, _ in code.around(call)
    )


def _broadcast(code: Code, kind: str, start: int) -> Iterator[Note]:
    line = _first(optimizers(code), start)
    if not _broadcasts(code):
        yield warning(
            "horovod.broadcast",
            line,
            f"processes start from different weights: add {_BROADCAST[kind]}",
        )
    elif code.called("broadcast_parameters", start="horovod.torch") and not code.called(
        "broadcast_optimizer_state", "broadcast_object", start="horovod"
    ):
        yield info(
            "horovod.broadcast",
            line,
            "the optimizer's state is not broadcast, as it must be after a checkpoint is read: "
            "add hvd.broadcast_optimizer_state(optimizer, root_rank=0)",
        )


def _checkpoint(code: Code, kind: str) -> Iterator[Note]:
    for call in saves(code, guarded=False):
        folder = keyword(call, "checkpoint_dir", "model_dir")
        write = (
            f"{ast.unparse(folder)} if hvd.rank() == 0 else None"
            if folder is not None and kind == "tf1"
            else "if hvd.rank() == 0: before it"
        )
        yield warning(
            "horovod.checkpoint",
            call.lineno,
            f"every process saves here, one over the other: save on rank 0 only, write {write}",
        )


def _first(calls: list[ast.Call], otherwise: int) -> int:
    return calls[0].lineno if calls else otherwise

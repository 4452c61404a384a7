"""Which changes that Horovod asks of a training program are missing, and nothing else tells of."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from distrain_nb.program.advice.flow import SIZE, Flow
from distrain_nb.program.advice.reading import given, keyword
from distrain_nb.program.advice.training import (
    info,
    is_cared_for,
    optimizers,
    saves,
    trains,
    warning,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

_SCHEDULE = re.compile(r"(?i:decay)[^.]*$|Schedule[^.]*$|LR$|\.lr_scheduler\.")
# What launches or reads data needs no start.
_NEEDS_START = re.compile(r"horovod(?!\.(spark|ray|run))(?!.*\.data\.)")
_RATE = re.compile(r"learning_rate|lr$|\['lr'\]$")
_WRAPS = ("DistributedOptimizer", "DistributedGradientTape", "DistributedAdasumOptimizer")
_AVERAGES = (
    *("allreduce", "allreduce_", "allreduce_async_", "grouped_allreduce", "DistributedTrainer"),
)
_BROADCASTS = (
    *("BroadcastGlobalVariablesHook", "BroadcastGlobalVariablesCallback", "broadcast_variables"),
    *("broadcast_global_variables", "broadcast_parameters", "broadcast_object"),
    *("TorchState", "KerasState", "TensorFlowKerasState", "TensorFlowState"),
)

_WRAP = {
    "torch": "optimizer = hvd.DistributedOptimizer("
    "optimizer, named_parameters=model.named_parameters())",
    "tf2": "tape = hvd.DistributedGradientTape(tape), or wrap the optimizer",
    "tf1": "optimizer = hvd.DistributedOptimizer(optimizer)",
    "keras": "optimizer = hvd.DistributedOptimizer(optimizer)",
}
_BROADCAST = {
    "torch": "hvd.broadcast_parameters(model.state_dict(), root_rank=0) and "
    "hvd.broadcast_optimizer_state(optimizer, root_rank=0) before the first step",
    "tf2": "hvd.broadcast_variables(model.variables, root_rank=0), "
    "and the optimizer's likewise, after the first step",
    "tf1": "hvd.BroadcastGlobalVariablesHook(0) among the hooks of the session or of train",
    "keras": "hvd.callbacks.BroadcastGlobalVariablesCallback(0) among the callbacks of fit",
}
_DEVICE = {
    "torch": "torch.cuda.set_device(hvd.local_rank())",
    "tf2": "tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')",
    "tf1": "config.gpu_options.visible_device_list = str(hvd.local_rank())",
}
# A process takes a GPU of its own by one of these, or by its environment.
_TAKES_DEVICE = ("set_device", "set_visible_devices")
_DEVICE_WORDS = ("visible_device_list", "local_rank")
_DEVICE_TEXTS = ("CUDA_VISIBLE_DEVICES", "LOCAL_RANK", "visible_device_list")
# Of TensorFlow 1: graphs, sessions, estimators and optimizers that later releases lack.
_OF_TENSORFLOW_1 = (
    *("Session", "MonitoredTrainingSession", "global_variables_initializer", "ConfigProto"),
    *("placeholder", "Estimator", "RunConfig", "get_or_create_global_step"),
    *("GradientDescentOptimizer", "MomentumOptimizer", "AdamOptimizer", "AdagradOptimizer"),
    *("RMSPropOptimizer", "AdadeltaOptimizer", "FtrlOptimizer"),
)


def horovod(code: Code) -> Iterator[Note]:
    """Yield the changes that a program with Horovod lacks; nothing for one that does not train."""
    uses = [call for call in code.calls if _NEEDS_START.match(code.name(call.func))]
    if not (uses or code.uses("horovod")) or is_cared_for(code):
        return
    imported = [line for name, line in code.modules.items() if name.startswith("horovod")]
    start = min([*imported, *(call.lineno for call in uses)])
    if trains(code) and not code.uses("horovod.mxnet"):
        kind = _kind(code)
        yield from _start(code, start)
        yield from _device(code, kind, start)
        yield from _learning_rate(code)
        yield from _optimizer(code, kind, start)
        yield from _broadcast(code, kind, start)
        for call in saves(code, guarded=False):
            folder = keyword(call, "checkpoint_dir", "model_dir")
            write = "if hvd.rank() == 0: before it"
            if folder is not None:
                write = f"{ast.unparse(folder)} if hvd.rank() == 0 else None"
            why = "every process saves here, one over the other: save on rank 0 only, write "
            yield warning("horovod.checkpoint", call.lineno, why + write)


def _kind(code: Code) -> str:
    """Return which of the four forms of the changes a program needs."""
    if code.uses("horovod.torch") or (code.uses("torch") and not code.uses("tensorflow")):
        return "torch"
    keras = code.uses("horovod.keras") or code.uses("horovod.tensorflow.keras")
    if keras or code.called("fit", "compile"):
        return "keras"
    return "tf1" if code.called(*_OF_TENSORFLOW_1) else "tf2"


def _start(code: Code, start: int) -> Iterator[Note]:
    if not code.called("init", start="horovod"):
        why = "Horovod is not started: its first call fails; add hvd.init() behind its import"
        yield warning("horovod.init", start, why)


def _device(code: Code, kind: str, start: int) -> Iterator[Note]:
    # PyTorch computes on the CPU unless it is told; TensorFlow takes all GPUs by itself.
    if kind == "torch" and not (code.says("cuda") or any("cuda" in text for text in code.texts)):
        return
    takes = code.called(*_TAKES_DEVICE) or any(map(code.says, _DEVICE_WORDS))
    if not takes and not any(name in text for text in code.texts for name in _DEVICE_TEXTS):
        write = _DEVICE.get(kind, _DEVICE["tf2"])
        yield info(
            "horovod.device",
            start,
            f"on a machine with GPUs every process takes the first one, or all: write {write}",
        )


def _learning_rate(code: Code) -> Iterator[Note]:
    made = optimizers(code)
    if not made or code.says("Adasum") or code.called("LearningRateWarmupCallback"):
        return
    schedules = [call for call in code.calls if _SCHEDULE.search(code.name(call.func))]
    rates = [node for call in (*made, *schedules) for node in given(call)]
    named = filter(_RATE.search, code.bindings)
    rates += [bound.value for name in named for bound in code.bindings[name]]
    if not any(map(Flow(code, SIZE, through=True).holds, rates)):
        yield info(
            "horovod.learning-rate",
            made[0].lineno,
            "the learning rate is not scaled: as every step sees hvd.size() batches, "
            "multiply it by hvd.size()",
        )


def _optimizer(code: Code, kind: str, start: int) -> Iterator[Note]:
    reduced = code.called(*_AVERAGES, start="horovod")  # of gradients, or of metrics
    gradients = ("grad" in ast.unparse(code.innermost(c, ast.stmt) or c) for c in reduced)
    if not code.called(*_WRAPS, start="horovod") and not any(gradients):
        yield warning(
            "horovod.optimizer",
            _first(optimizers(code) or code.called("GradientTape"), start),
            f"gradients are not averaged, each process trains for itself: write {_WRAP[kind]}",
        )


def _broadcast(code: Code, kind: str, start: int) -> Iterator[Note]:
    line, loops = _first(optimizers(code), start), (ast.For, ast.ListComp, ast.GeneratorExp)
    # Weights are broadcast with their own functions, or one by one.
    calls = code.called("broadcast", "broadcast_", start="horovod")
    one_by_one = any(isinstance(o, loops) for call in calls for o, _ in code.around(call))
    of_weights = code.called("broadcast_parameters", start="horovod.torch")
    states = code.called("broadcast_optimizer_state", "broadcast_object", start="horovod")
    if not (one_by_one or code.called(*_BROADCASTS, start="horovod")):
        why = f"processes start from different weights: add {_BROADCAST[kind]}"
        yield warning("horovod.broadcast", line, why)
    elif of_weights and not states:
        yield info(
            "horovod.broadcast",
            line,
            "the optimizer's state is not broadcast, as it must be after a checkpoint is read: "
            "add hvd.broadcast_optimizer_state(optimizer, root_rank=0)",
        )


def _first(calls: list[ast.Call], otherwise: int) -> int:
    return calls[0].lineno if calls else otherwise

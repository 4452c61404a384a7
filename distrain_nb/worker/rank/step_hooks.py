"""Hooks by which the frameworks tell the clock of steps what they do (`metrics/step_times.py`).

PyTorch: the loader's iterator, the optimizers' global hooks, what waits for a collective, DDP,
`torch.save`. Whatever is built on them (Lightning, Accelerate, transformers) has them too. Keras:
batches of `fit` and saving; its data is fetched in TensorFlow's graph, where Python sees nothing.
TensorFlow: datasets that a loop of Python reads.

On a GPU, kernels and NCCL's exchange go on while the program does something else; that counts as
computing (`metrics/gpu_work.py`). Nothing here waits for a GPU.
"""

from __future__ import annotations

import functools
import sys
import time
from threading import get_ident
from typing import Any, Callable, List

from distrain_nb.worker.metrics.step_times import CLOCK, DATA, EXCHANGE, SAVE, begin
from distrain_nb.worker.rank.on_import import on_import


def install() -> None:
    """Measure this rank, if there is where to write it."""
    if begin():
        on_import(
            {
                "torch.optim.optimizer": _change_optimizers,
                "torch.utils.data.dataloader": _change_loaders,
                "torch.distributed.distributed_c10d": _change_collectives,
                "torch.nn.parallel.distributed": _change_ddp,
                "torch.serialization": _change_save,
                "keras.src.callbacks.callback_list": _change_keras,
                "keras.src.saving.saving_api": _change_keras_save,
                "tensorflow.python.data.ops.iterator_ops": _change_datasets,
            }
        )


def _change_optimizers(module: Any) -> None:
    def optimized(optimizer: Any, *_: Any) -> None:
        if get_ident() == CLOCK.thread:
            CLOCK.optimized(optimizer)

    module.register_optimizer_step_post_hook(optimized)


def _change_loaders(module: Any) -> None:
    iterator = module._BaseDataLoaderIter
    following = iterator.__next__

    @functools.wraps(following)
    def next_batch(self: Any) -> Any:
        if get_ident() != CLOCK.thread:
            return following(self)
        CLOCK.workers = self._num_workers
        before = CLOCK.enter(DATA)
        try:
            return following(self)
        finally:
            CLOCK.leave(before)

    iterator.__next__ = next_batch
    # Between an epoch's begin and its first batch no step begins.
    module.DataLoader.__iter__ = _measured(module.DataLoader.__iter__, DATA)


def _change_collectives(module: Any) -> None:
    """Every blocking collective waits for its work, whatever name it is called by."""
    module.Work.wait = _measured(module.Work.wait, EXCHANGE)


def _change_ddp(module: Any) -> None:
    ddp = module.DistributedDataParallel
    broadcast, init = ddp._distributed_broadcast_coalesced, ddp._ddp_init_helper
    ddp._distributed_broadcast_coalesced = _measured(broadcast, EXCHANGE)

    @functools.wraps(init)
    def _ddp_init_helper(self: Any, *arguments: Any, **named: Any) -> Any:
        _watch_backward()
        return init(self, *arguments, **named)

    ddp._ddp_init_helper = _ddp_init_helper


def _watch_backward() -> None:
    """Measure how long a backward pass waits for DDP's exchange.

    DDP waits in a callback at the end of the pass, which it queues with the last gradient. One that
    is queued at the beginning comes before: it says when this rank has computed all of its own.
    """
    autograd: Any = sys.modules["torch.autograd"]
    run = autograd.backward
    if getattr(run, "_distrain", False):
        return
    queue = autograd.Variable._execution_engine.queue_callback

    @functools.wraps(run)
    def backward(tensors: Any, *arguments: Any, **named: Any) -> Any:
        node = getattr(tensors, "grad_fn", None)
        if node is None or get_ident() != CLOCK.thread or not hasattr(node, "register_prehook"):
            return run(tensors, *arguments, **named)
        computed: List[float] = []
        callback = lambda: computed.append(time.perf_counter())  # noqa: E731
        hook = node.register_prehook(lambda _: queue(callback))
        try:
            return run(tensors, *arguments, **named)
        finally:
            hook.remove()
            if computed:
                CLOCK.exchanged(computed[-1])

    backward._distrain = True  # type: ignore[attr-defined]
    autograd.backward = backward


def _change_save(module: Any) -> None:
    module.save = _measured(module.save, SAVE)
    package = sys.modules.get("torch")
    if hasattr(package, "save"):  # it was imported before
        package.save = module.save  # type: ignore[union-attr]


def _change_keras(module: Any) -> None:
    callbacks = module.CallbackList
    begin_batch, end_batch = callbacks.on_train_batch_begin, callbacks.on_train_batch_end

    @functools.wraps(begin_batch)
    def on_train_batch_begin(self: Any, *arguments: Any, **named: Any) -> Any:
        if get_ident() == CLOCK.thread:
            CLOCK.batch()
        return begin_batch(self, *arguments, **named)

    @functools.wraps(end_batch)
    def on_train_batch_end(self: Any, *arguments: Any, **named: Any) -> Any:
        if get_ident() == CLOCK.thread:
            CLOCK.optimized(self)
        return end_batch(self, *arguments, **named)

    callbacks.on_train_batch_begin = on_train_batch_begin
    callbacks.on_train_batch_end = on_train_batch_end


def _change_keras_save(module: Any) -> None:
    for name in ("save_model", "save_weights"):
        setattr(module, name, _measured(getattr(module, name), SAVE))


def _change_datasets(module: Any) -> None:
    iterator = module.OwnedIterator
    iterator.__next__ = _measured(iterator.__next__, DATA, begins_step=True)


def _measured(
    function: Callable[..., Any], kind: str, begins_step: bool = False
) -> Callable[..., Any]:
    """Return the function with its seconds counted for a kind."""
    enter, leave = (CLOCK.enter, CLOCK.leave) if begins_step else (CLOCK.switch, CLOCK.switch)

    @functools.wraps(function)
    def measured(*arguments: Any, **named: Any) -> Any:
        if get_ident() != CLOCK.thread:
            return function(*arguments, **named)
        before = enter(kind)
        try:
            return function(*arguments, **named)
        finally:
            leave(before)

    return measured

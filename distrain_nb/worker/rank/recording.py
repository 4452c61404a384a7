"""Records what this rank does in its training (`facts/record.py`), from its begin to its end.

Here are PyTorch's hooks for modules under DDP, optimizers' steps and losses, whose facts are in
`weights.py`; `samples.py` and `exchanges.py` have their own. The hooks change nothing that the
program computes, and an error of theirs ends the record, never the program.
"""

from __future__ import annotations

import functools
import sys
import weakref
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Callable, Dict, Iterator, List

from distrain_nb.worker.facts import record
from distrain_nb.worker.facts.record import RECORD, TROUBLE
from distrain_nb.worker.rank import exchanges, samples
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.weights import WATCH

_wrapped: List[Any] = []  # weak references to the modules that DDP has wrapped in this process
_hooks: List[str] = []  # that there are


def begin() -> None:
    """Record a run of this rank from now on, unless it is alone. One process may have several runs
    in turn: the hooks stay, and so do the modules of earlier ones."""
    if not record.begin():
        return
    WATCH.__init__()  # type: ignore[misc]
    exchanges.begin()
    samples.begin()
    if not _hooks:
        _hooks.append("torch")
        exchanges.install()
        samples.install()
        on_import(
            {
                "torch.nn.parallel.distributed": _change_ddp,
                "torch.optim.optimizer": _change_optimizers,
                "torch.distributed.algorithms.join": _change_join,
                "torch.autograd": _change_backward,
            }
        )
    for module in filter(None, [reference() for reference in _wrapped]):
        _follow(module)


def end(*, failed: bool) -> None:
    """Note the last state of what was followed, and that the program has ended."""
    if not RECORD.thread:
        return
    exchanges.safely_noted(exchanges.EXCHANGES.end)
    fields: Dict[str, Any] = {}
    try:
        fields = WATCH.end()
    except Exception as error:  # a GPU that has failed answers nothing more
        RECORD.note(TROUBLE, error=repr(error))
    RECORD.end(failed=failed, **fields)


def _is_watched() -> bool:
    """Return whether this thread's steps are followed; PyTorch's compiler follows none of ours."""
    if get_ident() != RECORD.thread:
        return False
    compiler: Any = sys.modules.get("torch.compiler")
    return compiler is None or not compiler.is_compiling()


def safely(function: Callable[..., None]) -> Callable[..., None]:
    """Return the function for a hook: an error of its own ends the record, never the program."""

    @functools.wraps(function)
    def safe(*arguments: Any, **named: Any) -> None:
        if not _is_watched():
            return
        try:
            function(*arguments, **named)
        except Exception as error:
            RECORD.note(TROUBLE, error=repr(error))
            RECORD.thread = 0

    return safe


@safely
def _follow(module: Any) -> None:
    """Follow a module under DDP."""
    distributed: Any = sys.modules["torch.distributed"]
    ranks = distributed.get_process_group_ranks(module.process_group)
    WATCH.add(module, [int(rank) for rank in ranks])


def _change_optimizers(module: Any) -> None:
    before = safely(lambda optimizer, *_: WATCH.before_step(optimizer))
    after = safely(lambda optimizer, *_: WATCH.after_step(optimizer))
    module.register_optimizer_step_pre_hook(lambda optimizer, *_: before(optimizer))
    module.register_optimizer_step_post_hook(lambda optimizer, *_: after(optimizer))


def _change_ddp(module: Any) -> None:
    ddp = module.DistributedDataParallel
    init, inside, register = ddp._ddp_init_helper, ddp._inside_ddp_forward, ddp.register_comm_hook
    torch: Any = sys.modules["torch"]
    leave_alone: Callable[..., Any] = torch._disable_dynamo

    @safely
    def forward(self: Any) -> None:
        if torch.is_grad_enabled():
            exchanges_now = bool(self.require_backward_grad_sync)
            line = WATCH.forward(self, exchanges=exchanges_now)
            # Buffers would be sent first; on a GPU the exchange has no line to compare.
            is_next = self.device_type == "cpu" and not self.modules_buffers
            if line is not None and exchanges_now and is_next:
                exchanges.EXCHANGES.mark_exchange(self.process_group, line)

    @functools.wraps(init)
    def _ddp_init_helper(self: Any, *arguments: Any, **named: Any) -> Any:
        result = init(self, *arguments, **named)
        if get_ident() == RECORD.thread:
            _wrapped.append(weakref.ref(self))
            _follow(self)
        return result

    def inside_forward(self: Any) -> Iterator[Any]:
        forward(self)
        with inside(self) as entered:
            yield entered

    @functools.wraps(register)
    def register_comm_hook(self: Any, state: object, hook: Callable[..., Any]) -> Any:
        if get_ident() == RECORD.thread:
            WATCH.leave(self)
        return register(self, state, hook)

    ddp._ddp_init_helper = _ddp_init_helper
    ddp._inside_ddp_forward = contextmanager(leave_alone(inside_forward, recursive=False))
    ddp.register_comm_hook = register_comm_hook


def _change_join(module: Any) -> None:
    enter = module.Join.__enter__

    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        WATCH.joins = True
        return enter(self)

    module.Join.__enter__ = entered


def _change_backward(module: Any) -> None:
    run = module.backward
    noted = safely(lambda tensors: WATCH.backward(tensors))

    @functools.wraps(run)
    def backward(tensors: Any, *arguments: Any, **named: Any) -> Any:
        noted(tensors)
        return run(tensors, *arguments, **named)

    # As `step_hooks` marks it, which goes round it only once.
    backward._distrain = getattr(run, "_distrain", False)  # type: ignore[attr-defined]
    module.backward = backward

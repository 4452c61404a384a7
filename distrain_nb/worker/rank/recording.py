"""Records what this rank does in its training (`facts/record.py`), from its begin to its end.

Here are PyTorch's hooks for modules under DDP, optimizers' steps and losses, whose facts are in
`weights.py`; `samples.py` and `exchanges.py` have their own. The hooks change nothing that the
program computes, and an error of theirs ends the record, never the program.

A step finds nothing of the hooks in the processor's caches, so each function in their way costs it
a microsecond or more: their common case is written with few of them.
"""

from __future__ import annotations

import functools
import sys
import weakref
from contextlib import contextmanager
from inspect import isgeneratorfunction, unwrap
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
                "torch.compiler": _keep_compiler,
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
        fields = WATCH.end(exchanges.EXCHANGES.large_ns)
    except Exception as error:  # a GPU that has failed answers nothing more
        RECORD.note(TROUBLE, error=repr(error))
    RECORD.end(failed=failed, **fields)


def _compiling() -> object:
    """Return what PyTorch's compiler does with this thread's frames: None if it compiles none."""
    return sys.modules.get("torch._dynamo")  # of a version that doesn't tell


def _keep_compiler(_: Any) -> None:
    global _compiling
    torch: Any = sys.modules["torch"]
    _compiling = torch._C._dynamo.eval_frame.get_eval_frame_callback


def safely(function: Callable[[Any], None]) -> Callable[..., None]:
    """Return the function for a hook of the thread that is followed, of which it gets the first
    argument. An error of its own ends the record, never the program; PyTorch's compiler follows
    none of ours."""
    unseen: List[Callable[[Any], None]] = []  # the same, by the compiler

    @functools.wraps(function)
    def safe(subject: Any, *_: Any) -> None:
        if get_ident() != RECORD.thread:
            return
        try:
            if _compiling() is None:
                function(subject)
            else:
                if not unseen:
                    unseen.append(sys.modules["torch"].compiler.disable(function))
                unseen[0](subject)
        except Exception as error:
            RECORD.note(TROUBLE, error=repr(error))
            RECORD.thread = 0

    return safe


@safely
def _follow(module: Any) -> None:
    """Follow a module under DDP."""
    distributed: Any = sys.modules["torch.distributed"]
    ranks = distributed.get_process_group_ranks(module.process_group)
    WATCH.add(module, [int(rank) for rank in ranks], _mark_of)


def _mark_of(module: Any, line: str) -> str:
    """Return the mark of a module's exchange, "" for none. Buffers would be sent first; on a GPU it
    has no line to compare."""
    if module.device_type != "cpu" or module.modules_buffers:
        return ""
    return exchanges.EXCHANGES.of_gradients(module.process_group, line)


def _change_optimizers(module: Any) -> None:
    noted = safely(WATCH.before_step)

    def before_step(optimizer: Any, *_: Any) -> None:
        if id(optimizer) not in WATCH.settled:
            noted(optimizer)

    module.register_optimizer_step_pre_hook(before_step)
    module.register_optimizer_step_post_hook(safely(WATCH.after_step))


def _change_ddp(module: Any) -> None:
    ddp = module.DistributedDataParallel
    init, inside, register = ddp._ddp_init_helper, ddp._inside_ddp_forward, ddp.register_comm_hook
    torch: Any = sys.modules["torch"]
    leave_alone: Callable[..., Any] = torch._disable_dynamo
    is_grad_enabled = torch.is_grad_enabled

    forward = safely(WATCH.forward)

    @functools.wraps(init)
    def _ddp_init_helper(self: Any, *arguments: Any, **named: Any) -> Any:
        result = init(self, *arguments, **named)
        if get_ident() == RECORD.thread:
            _wrapped.append(weakref.ref(self))
            _follow(self)
        return result

    plain = unwrap(inside)  # the generator, without a second context around it
    is_plain = isgeneratorfunction(plain)

    def inside_forward(self: Any) -> Iterator[Any]:
        if is_grad_enabled():
            forward(self)
        if is_plain:
            yield from plain(self)
        else:
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
    noted = safely(WATCH.backward)

    @functools.wraps(run)
    def backward(tensors: Any, *arguments: Any, **named: Any) -> Any:
        noted(tensors)
        return run(tensors, *arguments, **named)

    # As `step_hooks` marks it, which goes round it only once.
    backward._distrain = getattr(run, "_distrain", False)  # type: ignore[attr-defined]
    module.backward = backward

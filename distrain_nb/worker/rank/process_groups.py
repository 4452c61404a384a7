"""The process groups of a rank that stays: leaves them, whatever its main thread waits for.

A rank that waits in a collective, or in the rendezvous of its group, runs C code, which no signal
interrupts. Once the sockets are shut down that its groups have opened, it gets an error within
milliseconds, on both ends. `ProcessGroupGloo.abort` doesn't do: with PyTorch 2.13 it frees the
peers only when nobody holds the group any more, and never the thread that waits in it.
"""

from __future__ import annotations

import functools
import sys
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional

from distrain_nb.worker.machine import sockets
from distrain_nb.worker.rank.on_import import on_import

_C10D = "torch.distributed.distributed_c10d"
_MESSAGE_ARRIVES_S = 0.05
_OPENERS = ("init_process_group", "_new_process_group_helper")


class ProcessGroups:
    """Those of PyTorch that this process makes from `watch` on. `leave` may be called by any
    thread, the rest by the main one."""

    def __init__(self) -> None:
        self._sockets: Dict[int, str] = {}  # by descriptor, what the system calls them
        self._before: Optional[Dict[int, str]] = None  # while a group is being made
        self._sent: List[Any] = []  # which PyTorch would wait for
        self._is_left = False

    def watch(self) -> None:
        on_import({_C10D: self._change})

    def _change(self, module: Any) -> None:
        package = sys.modules.get("torch.distributed")
        for name in _OPENERS:
            function = self._noting(getattr(module, name))
            setattr(module, name, function)
            if hasattr(package, name):  # it was imported before
                setattr(package, name, function)

    def _noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that makes a group, with the sockets noted that it opens."""

        @functools.wraps(function)
        def noting(*arguments: Any, **named: Any) -> Any:
            outer, self._before = self._before, self._before or sockets.own_sockets()
            try:
                return function(*arguments, **named)
            finally:
                self._sockets.update(self._opened())
                self._before = outer

        return noting

    def _opened(self) -> Dict[int, str]:
        return {} if self._before is None else sockets.opened_since(self._before)

    def leave(self) -> None:
        """Free the main thread from what it waits for in a group, and the peers too."""
        self._is_left = True
        module: Any = sys.modules.get(_C10D)
        has_group = module is not None and module.is_initialized()
        if has_group:
            self._answer_receivers(module)
        sockets.shut_down({**self._sockets, **self._opened()})
        if has_group and "nccl" in _backends(module):
            _quietly(getattr(module, "_abort_process_group", None))

    def _answer_receivers(self, module: Any) -> None:
        """Send every peer an empty message. One that receives from anybody hears of no connection
        that ends (gloo in PyTorch 2.13), and its own code is stopped as soon as it has this."""
        empty = sys.modules["torch"].empty(0)
        for group, (backend, *_) in list(module._world.pg_map.items()):
            if "gloo" in str(backend):
                for peer in set(range(group.size())) - {group.rank()}:
                    with suppress(Exception):  # its connection has ended
                        self._sent.append(group.send([empty], peer, 0))
        if self._sent:
            time.sleep(_MESSAGE_ARRIVES_S)

    def forget(self) -> bool:
        """Take apart what was left, so that new groups can be made; say whether there was any."""
        if not self._is_left:
            return False
        self._is_left, self._sockets, self._sent = False, {}, []
        module: Any = sys.modules.get(_C10D)
        had_group = module is not None and module.is_initialized()
        if had_group:
            _quietly(module.destroy_process_group)
        # Accelerate takes its own state for a group that is there.
        state: Any = getattr(sys.modules.get("accelerate.state"), "AcceleratorState", None)
        if state is not None:
            _quietly(functools.partial(state._reset_state, reset_partial_state=True))
        return had_group

    def sequence(self) -> int:
        """Return how many collectives the default group has begun; -1 without one."""
        module: Any = sys.modules.get(_C10D)
        if module is None or not module.is_initialized():
            return -1
        try:
            return int(module.group.WORLD._get_sequence_number_for_group())
        except RuntimeError:  # a backend that doesn't count
            return -1


def _backends(module: Any) -> str:
    return " ".join(str(backend) for backend, *_ in module._world.pg_map.values())


def _quietly(function: Optional[Callable[[], Any]]) -> None:
    try:
        if function is not None:
            function()
    except Exception:  # it is broken, which is why it is left
        pass

"""The store at `MASTER_ADDR:MASTER_PORT` for programs that open it before, or without, a process
group.

Under torchrun its agent serves that store, and every rank is a client: so libraries such as torchft
open one themselves. Here rank 0 serves it as soon as it opens a client of its own. The server may
have other owners in the process, so a process group of rank 0 takes the same one.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, List, Tuple

from distrain_nb.worker.rank.on_import import on_import

_CLASSES = "torch._C._distributed_c10d"  # no module that is imported: `torch` makes it
_IS_MASTER = 3  # its place among the arguments of `TCPStore`

_served: List[Any] = []  # for as long as this process lives


def serve() -> None:
    """Have rank 0 serve the store when it first opens a client; do nothing on other ranks."""
    if os.environ.get("RANK") == "0" and "MASTER_PORT" in os.environ:
        on_import({"torch.distributed.distributed_c10d": _change})


def _change(_: Any) -> None:
    store = sys.modules[_CLASSES].TCPStore
    init = store.__init__

    @functools.wraps(init)
    def begin(self: Any, *arguments: Any, **named: Any) -> None:
        is_master = named.get("is_master", arguments[_IS_MASTER : _IS_MASTER + 1])
        if is_master in (False, (), (False,)) and not _served and _is_ours(*arguments, **named):
            _served.append(None)  # whatever comes of it, it is tried once
            host, port = _address()
            try:
                _served.append(
                    store(host, port, is_master=True, wait_for_workers=False, multi_tenant=True)
                )
            except RuntimeError:  # the program serves it, in another process
                pass
        init(self, *arguments, **named)

    store.__init__ = begin


def _is_ours(*arguments: Any, **named: Any) -> bool:
    asked = dict(zip(("host_name", "port"), arguments))
    asked.update(named)
    return (asked.get("host_name"), asked.get("port")) == _address()


def _address() -> Tuple[str, int]:
    port = os.environ.get("MASTER_PORT", "")
    return os.environ.get("MASTER_ADDR", ""), int(port) if port.isdigit() else 0

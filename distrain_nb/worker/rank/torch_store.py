"""The store of PyTorch's rendezvous, for libraries that open a client themselves.

Under torchrun, an agent serves the store at `MASTER_ADDR:MASTER_PORT`, and every rank is a client.
Libraries such as torchft open a client on every rank. Here rank 0 serves the store when it first
opens a client. Its process group may serve the same store: the server may have several owners in
its process.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, List, Tuple

from distrain_nb.worker.rank.on_import import on_import

DISTRIBUTED = "torch.distributed.distributed_c10d"

_CLASSES = "torch._C._distributed_c10d"  # no module that is imported: `torch` makes it
_IS_MASTER = 3  # its place among the arguments of `TCPStore`
_served: List[Any] = []  # for as long as this process lives


def serve_store() -> None:
    """Make rank 0 serve the store when it first opens a client. Do nothing on other ranks."""
    if os.environ.get("RANK") == "0" and "MASTER_PORT" in os.environ:
        on_import({DISTRIBUTED: _change_store})


def _change_store(_: Any) -> None:
    store = sys.modules[_CLASSES].TCPStore
    init = store.__init__

    @functools.wraps(init)
    def begin(self: Any, *arguments: Any, **named: Any) -> None:
        is_master = named.get("is_master", arguments[_IS_MASTER : _IS_MASTER + 1])
        if is_master in (False, (), (False,)) and not _served and _is_ours(*arguments, **named):
            _served.append(None)  # tried once, also if it fails
            host, port = _address()
            try:
                _served.append(
                    store(host, port, is_master=True, wait_for_workers=False, multi_tenant=True)
                )
            except RuntimeError:  # another process of the program serves it
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

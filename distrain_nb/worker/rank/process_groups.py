"""Changes to how PyTorch makes and destroys process groups.

Groups of gloo that a program has destroyed stay in memory as long as their rank. PyTorch takes a
group apart when its last reference goes, which a DDP module may hold: in the thread that holds the
interpreter's lock it joins the group's own thread, and that one may be waiting for the lock to free
a tensor (pytorch/pytorch#56297). A function whose model is its own ended so, now and then. The
process ends soon after, and frees all.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, List

from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.reduction import groups

_DISTRIBUTED = "torch.distributed.distributed_c10d"

_kept: List[Any] = []


def keep() -> None:
    """Keep what is destroyed from now on."""
    on_import({_DISTRIBUTED: _change})


def reduce() -> None:
    """Have the reducers of this rank, where it has some, sum for the groups that are made."""
    if groups.addresses():
        on_import({_DISTRIBUTED: groups.install})


def _change(module: Any) -> None:
    destroy = module.destroy_process_group
    module._world  # noqa: B018  # before PyTorch 2 there is none, and all is left as it is

    @functools.wraps(destroy)
    def destroy_process_group(group: Any = None) -> None:
        known = module._world.pg_map
        gloo = [pg for pg, (backend, *_) in known.items() if "gloo" in str(backend)]
        _kept.extend(gloo)
        destroy(group)
        groups.end(pg for pg in gloo if pg not in module._world.pg_map)

    module.destroy_process_group = destroy_process_group
    package = sys.modules.get("torch.distributed")
    if hasattr(package, destroy.__name__):  # it was imported before
        setattr(package, destroy.__name__, destroy_process_group)

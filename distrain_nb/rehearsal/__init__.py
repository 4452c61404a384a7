"""Stand-ins that speak the clouds' protocols and run a job's replicas here, from its image.

    with distrain_nb.rehearsal.vertex(buckets=["my-bucket"]) as endpoints:
        ...

gives tests of your own the addresses of the cloud's services on this machine, by name. Every place
with a stand-in has such a function, by the name of the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from distrain_nb import installed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Any

GROUP = "distrain_nb.rehearsals"


def __getattr__(name: str) -> Callable[..., AbstractContextManager[Any]]:
    """Return the function that runs a place's stand-in, such as `vertex`."""
    point = None if name.startswith("_") else installed.points_of(GROUP).get(name)
    if point is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function: Callable[..., AbstractContextManager[Any]] = point.load()
    return function


def __dir__() -> Iterable[str]:
    return sorted({*globals(), *installed.points_of(GROUP)})

"""What counts where two processes compare their objects."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest

from distrain_nb.worker.fingerprint import fingerprint

pytestmark = pytest.mark.brief


class Kernel:
    """As Triton's `jit` makes it: its cache, its line and the names of its module are its own."""

    def __init__(self, fn: FunctionType, **more: Any) -> None:
        self.fn, self.__name__, self.__globals__ = fn, fn.__name__, {"In": [1, 2]}
        vars(self).update(more)


class Autotuner:
    """As Triton's `autotune` makes it, around such a one: it goes by no name."""

    def __init__(self, fn: Kernel, **more: Any) -> None:
        self.fn, self.base_fn = fn, fn.fn
        vars(self).update(more)


def add(x: int) -> int:
    return x + 1


other: dict[str, Any] = {"__name__": __name__}
exec("def add(x):\n    return x + 2", other)
CACHED = {"hash": "3293", "starting_line_number": 9, "cache": {1: 2}}


@pytest.mark.parametrize(
    ("notebook", "run"),
    [
        (Kernel(add, **CACHED), Kernel(add, hash=None)),
        (Autotuner(Kernel(add, **CACHED), bench_time=0.9), Autotuner(Kernel(add))),
    ],
    ids=["jit", "autotune"],
)
def test_of_what_a_packages_decorator_makes_the_function_counts(notebook: Any, run: Any) -> None:
    def look(obj: Any, own: set[str]) -> dict[str, str]:
        return fingerprint("add", obj, own)

    packages = {"functions"}
    for function in (add, other["add"]):
        function.__module__ = "functions"
    assert look(notebook, packages) == look(run, packages)
    changed = type(run)(Kernel(other["add"])) if type(run) is Autotuner else Kernel(other["add"])
    assert look(changed, packages) != look(run, packages)
    assert look(notebook, {*packages, __name__}) != look(run, {*packages, __name__}), (
        "what a decorator of the notebook keeps is the user's"
    )

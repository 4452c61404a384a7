"""Objects that live in one process and can't be captured: where they are, what to do instead."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple

from distrain_nb.findings import Finding, Severity
from distrain_nb.worker.fingerprint import dict_of, key_of
from distrain_nb.worker.plain import is_plain_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

GENERAL_ADVICE = "create it in the cell, or capture what it is made from"
_CREATE = "create it in the cell"
_CONNECT = "connect in the cell"
# By the qualified name of a class, where pickle itself would say nothing clear: what its objects
# are, what to do.
_BY_TYPE = {
    "sqlalchemy.engine.base.Engine": ("is a database connection", _CONNECT),
    "sqlalchemy.engine.base.Connection": ("is a database connection", _CONNECT),
    "sqlalchemy.orm.session.Session": ("is a database session", _CONNECT),
    "requests.sessions.Session": ("is an HTTP session", _CREATE),
    "ipywidgets.widgets.widget.Widget": ("is a widget on the screen", "capture its .value"),
    "traitlets.config.configurable.Configurable": ("belongs to the notebook's kernel", _CREATE),
    "torch.utils.tensorboard.writer.SummaryWriter": ("writes a log", _CREATE),
    "tensorflow.python.data.ops.dataset_ops.DatasetV2": (
        "is a pipeline in TensorFlow's memory",
        "capture the arrays or paths that it reads, and create it in the cell",
    ),
    "xgboost.core.DMatrix": (
        "is a matrix in XGBoost's memory",
        "capture its arrays, and create it in the cell",
    ),
    "weakref.finalize": ("waits for the end of an object in one process", _CREATE),
    "wandb.sdk.wandb_run.Run": ("writes a log", "call wandb.init in the cell"),
    "torch.utils.data.dataloader._BaseDataLoaderIter": (
        "is an iterator over a loader",
        "capture the loader or its dataset, and call iter(...) in the cell",
    ),
}
_LAZY = (GeneratorType, AsyncGeneratorType, CoroutineType)
_FILES = (io.FileIO, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
_HOST = ("cpu", "meta")
_PLAIN = (bool, int, float, str, bytes, type(None))


class Refusal(Exception):
    """Why an object can't be captured, and what to do instead."""

    def __init__(self, reason: str, advice: str) -> None:
        self.reason, self.advice = reason, advice
        super().__init__(f"{reason}: {advice}")


def refusal(obj: Any) -> Refusal | None:
    """Return why this object, whatever it holds, can't be captured; None where it may."""
    if isinstance(obj, _LAZY):
        what = "coroutine" if isinstance(obj, CoroutineType) else "generator"
        return Refusal(f"is a {what}", "make a list of its items, or create it in the cell")
    if isinstance(obj, _FILES):
        return Refusal("is an open file", "capture its path, and open it in the cell")
    for base in type(obj).__mro__:
        found = _BY_TYPE.get(f"{base.__module__}.{base.__qualname__}")
        if found is not None:
            return Refusal(*found)
    return _on_device(obj)


def _on_device(obj: Any) -> Refusal | None:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return None
    if isinstance(obj, torch.nn.Module):
        device = next((t.device for t in _tensors(obj) if t.device.type not in _HOST), None)
        advice = "capture `model.cpu()`, or its state_dict() on the CPU, and move it in the cell"
        return Refusal(f"is a model on {device}", advice) if device else None
    if isinstance(obj, torch.optim.Optimizer):
        parameters = (p for group in obj.param_groups for p in group["params"])
        device = next((p.device for p in parameters if p.device.type not in _HOST), None)
        advice = (
            "create it in the cell, when the model is on its device; what it has learned is its"
            " state_dict(), to capture on the CPU"
        )
        return Refusal(f"is an optimizer of parameters on {device}", advice) if device else None
    if isinstance(obj, torch.Tensor) and obj.device.type not in _HOST:
        return Refusal(
            f"is a tensor on {obj.device}", "capture its `.cpu()`, and move it in the cell"
        )
    return None


def _tensors(model: Any) -> Any:
    yield from model.parameters()
    yield from model.buffers()


# -- where it is inside a value ------------------------------------------------------------------


@dataclass(frozen=True)
class PickleProblem:
    """What can't travel: the place inside the variable, its type, why, and what to do."""

    path: str
    type: str
    reason: str
    advice: str

    @property
    def short(self) -> str:
        return f"`{self.path}`, {self.type}, {self.reason}"

    def message(self, name: str) -> str:
        """Return the sentence about the value of that name."""
        inside = "" if self.path == name else f" in `{name}`"
        return (
            f"`{self.path}` ({self.type}){inside} {self.reason} and can't be captured: "
            f"{self.advice}"
        )


def innermost(name: str, value: Any, failure: Callable[[Any], Exception | None]) -> tuple[str, Any]:
    """Return the smallest part of a value that can't travel, and the way to it."""
    visited = set()
    while id(value) not in visited:
        visited.add(id(value))
        if isinstance(failure(value), Refusal) and refusal(value) is not None:
            break
        for path, part in _parts_before_error(name, value):
            if not isinstance(part, _PLAIN) and failure(part) is not None:
                name, value = path, part
                break
    return name, value


def _parts_before_error(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield parts until the value's own code, such as its `__iter__`, fails."""
    with suppress(Exception):
        yield from _parts(name, value)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"{name}[{_key(key)}]", part) for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}[{position}]", part) for position, part in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from ((f"an item of {name}", part) for part in value)
    elif isinstance(value, partial):
        yield from _parts(f"{name}.args", value.args)
        yield from _parts(f"{name}.keywords", value.keywords)
    for attribute, part in _attributes(value):
        yield f"{name}.{attribute}", part


def _key(key: Any) -> str:
    """Return a key as one writes it; one that can't be written, such as a tensor, by its type."""
    return key_of(key) or f"<{type(key).__name__}>"


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    state, module = dict_of(value), type(value).__module__.partition(".")[0]
    is_pythons = module in sys.stdlib_module_names and not is_plain_object(value)
    if isinstance(value, type) or not isinstance(state, dict) or is_pythons:
        return
    for attribute, part in state.items():
        if attribute in ("_modules", "_parameters", "_buffers") and isinstance(part, dict):
            yield from part.items()  # model.layer.weight, as one writes it
        else:
            yield attribute, part


# -- what pickle drops ----------------------------------------------------------------------------


class LostPart(NamedTuple):
    """A part of a value that is another one when its pickle is read: what it was and is then."""

    path: str
    before: str
    after: str


def lost_part(where: str, name: str, parts: Iterable[LostPart]) -> Iterator[Finding]:
    """Yield a warning for the first part that the pickle of a value drops."""
    for part in islice(parts, 1):
        message = (
            f"`{part.path}` is {part.before} in the notebook but {part.after} in the run, because"
            f" pickle does not save this part of `{name}`. Set it in the cell"
        )
        yield Finding("capture.lost-part", Severity.WARNING, where, message)

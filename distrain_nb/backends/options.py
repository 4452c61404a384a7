"""Options of jobs and backends, declared as fields of a frozen dataclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.layout.option import Option

if TYPE_CHECKING:
    from distrain_nb.layout.option import Choices

Options = TypeVar("Options")
Default = TypeVar("Default")


@dataclass(frozen=True)
class NoOptions:
    """A backend without options of its own."""


def option(
    form: str,
    about: str,
    default: Default,
    *,
    shown: bool = True,
    setting: str = "",
    like: tuple[str, ...] = (),
    elsewhere: str = "",
    bare: str | None = None,
    topic: str = "",
    read: Callable[[str], tuple[str, ...]] | None = None,
    label: str = "",
    choices: Choices | None = None,
    folded: bool = False,
    request: tuple[str, ...] = (),
    written_as: str = "",
) -> Default:
    """Declare an option: a field of a frozen dataclass, `queue: str = option("NAME", "…", "")`.

    The option itself: `form` is the form of its value, and `about` a line of help. A default of
    False makes it a switch. A default of `()` allows it several times, and `read` makes texts of
    each. With a default of None it may be left open. `bare` is its value if it is written without
    one. `written_as` is its name in the magic if a field can't have that name. An option that may
    have secrets is not `shown`.

    Other options: `setting` is the name under which `%distrain config` keeps a value for all runs.
    `like` are options of other backends with the same effect. `elsewhere` names the way to this
    effect on a backend without such an option. `topic` is one more heading of `--help` for it.

    The form: `label` names its field. The field has a text, several texts with spaces between, or
    yes for a switch. A `folded` field is shown among more settings. `choices` returns values for a
    layout, which the form and Tab offer. It is called at every keystroke and may ask the service,
    so it has to cache the answers. If it raises, nothing is offered. `request` is the option's path
    in a request in JSON, such as `scheduling.disableRetries`. Names in other forms may follow. The
    form reads the option there and writes it there.
    """
    if label and default not in ("", (), False, None) and not isinstance(default, str):
        raise TypeError(f"option({form!r}): a field of the form is for a text, not {default!r}")
    metadata = {
        "form": form, "help": about, "setting": setting, "like": like, "elsewhere": elsewhere,
        "bare": bare, "topic": topic, "split": read, "several": default == (), "label": label,
        "kind": "combo" if choices or default is False else "text",
        "hint": (form or "no") if label else "", "choices": choices,
        "extra": folded, "request": request, "written_as": written_as,
    }  # fmt: skip
    return field(default=default, repr=shown, metadata=metadata)


def declared(options: type[object]) -> dict[str, Option]:
    """Return the options that a dataclass declares, by field, in order."""
    return {**_declared(options)}  # type: ignore[arg-type]  # a class that mypy takes for unhashable


def read_options(
    options: type[Options],
    written: Mapping[str, object],
    stored: Mapping[str, str] | None = None,
) -> Options:
    """Return the dataclass with the values of *written*, by field, from the magic or Python.

    A field that *written* lacks has the value of its setting in *stored* (`config.yaml`), or else
    its default.
    """
    stored = stored or {}
    values: dict[str, object] = {}
    for item in declared(options).values():
        value = _field_value(item, written[item.field]) if item.field in written else item.default
        if value == item.default and item.setting in stored:
            value = stored[item.setting]
        values[item.field] = value
    return options(**values)


@lru_cache(maxsize=256)
def _declared(options: type[object]) -> dict[str, Option]:
    return {
        item.name: Option(item.name, default=item.default, **item.metadata)
        for item in fields(options)  # type: ignore[arg-type]
    }


def _field_value(item: Option, value: object) -> object:
    """Return a value in the type of its field: a text, several texts, or a bool of a switch."""
    if item.several:
        if isinstance(value, str):
            return item.split(value) if item.split else (value,)
        return tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)
    return value if isinstance(value, bool) or not item.form else str(value)

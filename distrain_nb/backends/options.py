"""Options of jobs and backends, declared as fields of a frozen dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.layout.option import Option

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from distrain_nb.layout.option import Choices

Options = TypeVar("Options")
Default = TypeVar("Default")


@dataclass(frozen=True)
class NoOptions:
    """A backend without options of its own."""


def option(
    form: str,
    what: str,
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

    `form` is how its value is written and `what` says in a line what it is for. A default of False
    makes it a switch, `()` one that may be given several times, None one that may be left open.
    `setting` is the name under which `%distrain config` keeps a value for all runs. `like` are
    options of other backends that do the same, `elsewhere` what does the same where there is no
    such option. `bare` is the value of an option that is written without one. `topic` is what
    `--help` shows it under besides. `read` makes texts of what was written for one that may be
    given several times. What may hold secrets isn't `shown`. `label` names a field of the form for
    it, which has a text, or several with spaces between, or yes for a switch; a `folded` one is
    shown where more settings are asked for. `choices` gives what it can take beside a layout: Tab
    and the form offer it. It is asked at every keystroke and may ask the service, so it keeps what
    it was answered; where it raises, nothing is offered. `request` says where a request in JSON
    has it, `scheduling.disableRetries`, and behind that how other forms call it: the form reads it
    from there and writes it there. `written_as` is its name in the
    magic where a field can't be called so.
    """
    if label and default not in ("", (), False, None) and not isinstance(default, str):
        raise TypeError(f"option({form!r}): a field of the form is for a text, not {default!r}")
    metadata = {
        "form": form, "help": what, "setting": setting, "like": like, "elsewhere": elsewhere,
        "bare": bare, "topic": topic, "split": read, "several": default == (), "label": label,
        "kind": "combo" if choices or default is False else "text",
        "hint": (form or "no") if label else "", "choices": choices,
        "extra": folded, "request": request, "written_as": written_as,
    }  # fmt: skip
    return field(default=default, repr=shown, metadata=metadata)


def declared(options: type[object]) -> dict[str, Option]:
    """Return the options that a dataclass declares, by their fields, in order."""
    return {
        item.name: Option(item.name, default=item.default, **item.metadata)
        for item in fields(options)  # type: ignore[arg-type]
    }


def made(
    options: type[Options], given: Mapping[str, object], kept: Mapping[str, str] | None = None
) -> Options:
    """Return the dataclass with values by field, as the magic or Python has them; what isn't given
    is as in `kept`, the settings of `config.yaml` by name, or else the default."""
    kept = kept or {}
    values: dict[str, object] = {}
    for item in declared(options).values():
        value = _held(item, given[item.field]) if item.field in given else item.default
        if value == item.default and item.setting in kept:
            value = kept[item.setting]
        values[item.field] = value
    return options(**values)


def _held(item: Option, given: object) -> object:
    """Return what the dataclass holds for what was given: texts, unless it is a switch."""
    if item.several:
        if isinstance(given, str):
            return item.split(given) if item.split else (given,)
        return tuple(map(str, given)) if isinstance(given, (list, tuple)) else (str(given),)
    return given if isinstance(given, bool) or not item.form else str(given)

"""A layout as options of the magic: reading and writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from distrain_nb.errors import OptionError, closest, did_you_mean, shown
from distrain_nb.layout.option import Option
from distrain_nb.layout.options import BY_FIELD, BY_FLAG, OPTIONS
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.reduction_server import sized_reducers
from distrain_nb.layout.words import quoted, words_of
from distrain_nb.repairs import write_in_option

if TYPE_CHECKING:
    from distrain_nb.layout.layout import Layout


def split(text: str) -> dict[str, object]:
    """Return the options of a line by field. Raises OptionError for other options."""
    options: dict[str, object] = {}
    words = iter(words_of(text))
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--spot":
            options["spot"] = True
            continue
        if name not in BY_FLAG:
            hint = did_you_mean(name, BY_FLAG, ".")
            raise OptionError(f"unknown layout option {shown(word)}{hint} There are {_flags()}")
        option = BY_FLAG[name]
        value = value if equals else next(words, "")
        if not value:
            raise OptionError(f"{option.name} has no value: expected {option.expected}")
        options[option.field] = value
    return options


def changed(layout: Layout, options: Mapping[str, object]) -> Layout:
    """Return *layout* with the values of these options, as a user writes them.

    An option with the value None changes nothing. Raises OptionError with the option, the value
    and the allowed form.
    """
    values = {name.replace("-", "_"): value for name, value in options.items() if value is not None}
    if values.pop("spot", False):
        values.setdefault("scheduling", "SPOT")
    automatic = values.get("reducers") == "auto"
    if automatic:
        del values["reducers"]
    layout = replace(layout, **{name: _value(name, values[name]) for name in values})
    return replace(layout, reducers=sized_reducers(layout)) if automatic else layout


def texts(layout: Layout) -> dict[str, str]:
    """Return the texts of the fields that a layout sets, by field. `on` is always one."""
    return {option.field: option.write(getattr(layout, option.field)) for option in _set(layout)}


def line(layout: Layout) -> str:
    """Return a layout as options of the magic. `split` and `changed` read them back."""
    return " ".join(printed(layout))


def printed(layout: Layout) -> Iterator[str]:
    """Yield the options of a layout, each with its value."""
    for field, text in texts(layout).items():
        option = BY_FIELD[field]
        if field == "scheduling" and text == "SPOT":
            yield "--spot"
        else:
            yield f"{option.names[0]} {quoted(text)}"


def set_fields(layout: Layout) -> Iterator[str]:
    """Yield the names of the fields that a layout sets. `on` is always one."""
    return (option.field for option in _set(layout))


def _set(layout: Layout) -> Iterator[Option]:
    kind = type(layout)
    for option in OPTIONS:
        name = option.field
        if name == "on" or getattr(layout, name) != getattr(kind, name):
            yield option


def _flags() -> str:
    return ", ".join([*BY_FLAG, "--spot"])


def _value(field: str, value: object) -> Any:
    option = BY_FIELD.get(field)
    if option is None:
        hint = did_you_mean(field, BY_FIELD, ".")
        fields = ", ".join(BY_FIELD)
        raise OptionError(f"unknown layout option {shown(field)}{hint} There are {fields}, spot")
    if isinstance(value, Pool):
        return value
    try:
        return option.read(str(value).strip())
    except OptionError as error:
        raise OptionError(f"{option.name}: {error}") from None
    except ValueError:
        meant = closest(str(value), option.words)
        hint = f"; did you mean {meant}?" if meant else ""
        message = f"invalid {option.name} {shown(value)}: expected {option.expected}{hint}"
        fixes = (write_in_option(str(value), meant),) if meant else ()
        raise OptionError(message, where=str(value), fixes=fixes) from None

"""The installed backends. All declare themselves by entry points, also those of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import cache
from importlib.metadata import EntryPoint
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from distrain_nb import installed
from distrain_nb.backends.options import declared
from distrain_nb.backends.tuning import Tunes
from distrain_nb.errors import OptionError, closest
from distrain_nb.layout import OPTIONS, Layout, Pool, Role
from distrain_nb.layout.place import declare, described
from distrain_nb.repairs import write_in_option

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.layout.choices import Choice

GROUP, REHEARSALS = "distrain_nb.backends", "distrain_nb.rehearsals"

# Gives, for the text after --rehearse and the buckets of a job, the services' addresses by name.
Rehearsal: TypeAlias = "Callable[[str, Iterable[str]], AbstractContextManager[Mapping[str, str]]]"


def find(name: str) -> AnyBackend:
    """Return the backend of that name. Raises OptionError with the installed ones."""
    entry = installed.entry(GROUP, name)
    if entry is None:
        meant = closest(name, names())
        hint = f"; did you mean {meant}?" if meant else "."
        message = f"--on {name}: no such backend is installed{hint} There are {', '.join(names())}"
        fixes = (write_in_option(name, meant),) if meant else ()
        raise OptionError(message, where=name, fixes=fixes)
    try:
        return _load(entry)
    except Exception as error:
        raise OptionError(f"--on {name}: the backend can't be loaded: {_brief(error)}") from error


def names() -> list[str]:
    """Return the names of all that are installed: this machine, the package's own, then others."""
    return sorted(installed.names(GROUP), key=lambda name: name != "local")


def all_backends() -> list[AnyBackend]:
    """Return all that can be loaded; `broken` has the others."""
    return [backend for backend in map(_usable, names()) if not isinstance(backend, Exception)]


def broken() -> Mapping[str, str]:
    """Return by name why installed backends can't be loaded."""
    tried = {name: _usable(name) for name in names()}
    return {name: _brief(error) for name, error in tried.items() if isinstance(error, Exception)}


def title_of(name: str) -> str:
    """Return the title of a backend's place; the backend's name where it isn't installed."""
    try:
        return find(name).title
    except OptionError:
        return name


def choices(layout: Layout, path: str) -> tuple[Choice, ...]:
    """Return the values that a field of a layout can take, by the fact tables and the backend."""
    from distrain_nb.layout import choices as tables

    offers = (
        backend.offers(layout, path) for backend in all_backends() if backend.name == layout.on
    )
    return (*tables.choices(layout, path), *chain.from_iterable(offers))


def option_choices(layout: Layout, name: str) -> tuple[Choice, ...]:
    """Return the values that an option of a layout's backend can take, if it knows them."""
    backend = _usable(layout.on)
    option = None if isinstance(backend, Exception) else declared(backend.options).get(name)
    if option is None or option.choices is None:
        return ()
    try:
        return tuple(option.choices(layout))
    except Exception:  # the service may be away: what is typed is taken as it is
        return ()


def settings() -> dict[str, str]:
    """Return the settings that backends declare, by name, and what they are for."""
    options = [
        option for backend in all_backends() for option in declared(backend.options).values()
    ]
    return {option.setting: option.help for option in options if option.setting}


def rehearsal_of(name: str) -> Rehearsal:
    """Return the stand-in for the service of the backend of that name. Raises OptionError."""
    entry = installed.entry(REHEARSALS, name)
    if entry is not None:
        stand_in: Rehearsal = entry.load()
        return stand_in
    raise OptionError(f"--rehearse: nothing is installed that stands in for {title_of(name)}")


def lacks_for_rehearsal(name: str) -> Sequence[str]:
    """Return what this machine lacks for a rehearsal, as its stand-in's own `lacks` lists it; each
    with the way to get it."""
    lacks: Callable[[], Sequence[str]] = getattr(rehearsal_of(name), "lacks", tuple)
    return lacks()


def _usable(name: str) -> AnyBackend | Exception:
    try:
        return find(name)
    except OptionError as error:
        return error


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@cache
def _load(entry: EntryPoint) -> AnyBackend:
    backend: AnyBackend = entry.load()()
    unknown = sorted(set(backend.reads) - _paths())
    if unknown:
        raise ValueError(f"`reads` names {unknown[0]!r}, which is no field of a layout")
    declare(
        described(
            backend.name,
            backend.title,
            backend.reads,
            implies_primary=backend.implies_primary,
            tunes=isinstance(backend, Tunes),
        )
    )
    return backend


def _paths() -> set[str]:
    """Return the paths of all fields of a layout."""
    layout_fields = {option.field for option in OPTIONS}
    return layout_fields | {f"{role}.{field.name}" for role in Role for field in fields(Pool)}

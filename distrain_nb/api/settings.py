"""The settings that hold for jobs on each backend: chosen, kept, or found on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from distrain_nb.api.keywords import Options
from distrain_nb.api.preparation import prepare
from distrain_nb.backends import plugins
from distrain_nb.backends.options import declared
from distrain_nb.backends.settings import is_detected, shown
from distrain_nb.errors import OptionError

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.backends.settings import SettingValue


def detected_settings(backend: AnyBackend) -> dict[str, SettingValue]:
    """Find settings for a small job on a backend, but for those that a user has set, by name.

    Raises OptionError for a file that can't be read.
    """
    if not backend.example:
        return {}
    options = cast("Options", {"on": backend.name, **backend.example})
    job = prepare("pass", **options).job
    return {
        name: setting for name, setting in backend.settings(job).items() if is_detected(setting)
    }


def setting_hints(place: str) -> dict[str, str]:
    """Return the settings that jobs at a place would use, by name, as hints for a form's empty
    fields."""
    backends = {backend.name: backend for backend in plugins.all_backends()}
    try:
        settings = detected_settings(backends[place]) if place in backends else {}
    except OptionError:  # a job would say so
        return {}
    return {name: f"{shown(name, entry)}, from {entry.origin}" for name, entry in settings.items()}


def described_settings() -> tuple[frozenset[str], str]:
    """Return the names of all that was found, and a line for each, by backend, with where it was
    found."""
    names: set[str] = set()
    lines: list[str] = []
    for backend in plugins.all_backends():
        try:
            settings = detected_settings(backend)
        except OptionError as error:
            lines += ["", f"{backend.title}: {error}"]
            continue
        if not settings:
            continue
        called = {name: _called(backend, name) for name in settings}
        names |= set(called.values())
        rows = [
            (f"{called[name]} = {shown(name, entry)}", entry.origin)
            for name, entry in settings.items()
        ]
        width = max(len(assignment) for assignment, _ in rows)
        lines += ["", f"{backend.title}, found on this machine:"]
        lines += [f"{assignment:{width}}  # {origin}" for assignment, origin in rows]
    return frozenset(names), "\n".join(lines)


def _called(backend: AnyBackend, name: str) -> str:
    """Return a setting as `%distrain config` takes it, else the option, else what it is."""
    option = declared(backend.options).get(name)
    if option is None:
        return name if name == "region" else name.replace("_", " ")
    return option.setting or option.name

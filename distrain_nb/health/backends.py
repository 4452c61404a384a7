"""What backends need: what they say themselves, and the settings of their jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from distrain_nb import api
from distrain_nb.backends import plugins
from distrain_nb.backends.checks import Check, Health
from distrain_nb.findings import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.api.keywords import Options
    from distrain_nb.backends.base import AnyBackend


def backends() -> Iterator[tuple[str, tuple[Check, ...]]]:
    """The checks of each that is installed, by its title, but for those that need nothing."""
    for backend in plugins.all_backends():
        checks = (*backend.checks(), *_settings(backend))
        if checks:
            yield backend.title, checks
    for name, why in plugins.broken().items():
        yield name, (Check("backend", Health.WRONG, why, "install it anew, or remove it"),)


def _settings(backend: AnyBackend) -> Iterator[Check]:
    """What a small job there would be refused for: what has not been set."""
    if not backend.example:
        return
    options = cast("Options", {"on": backend.name, **backend.example})
    wrong = errors(api.check("pass", **options))
    if not wrong:
        found = "complete: %distrain config shows and changes them"
        yield Check("settings", Health.GOOD, found)
        return
    names = [finding.where for finding in wrong]
    remedy = f"%distrain config {' '.join(f'{name}=…' for name in names)} keeps them"
    yield Check("settings", Health.MISSING, f"not set: {', '.join(names)}", remedy)

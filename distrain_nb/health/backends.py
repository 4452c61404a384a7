"""Checks of backends: those that they declare themselves, and the settings of their jobs."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import TYPE_CHECKING, cast

from distrain_nb import api
from distrain_nb.backends import plugins
from distrain_nb.backends.checks import Check, Health
from distrain_nb.backends.settings import is_detected
from distrain_nb.config import Config
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.program.progress import report

if TYPE_CHECKING:
    from distrain_nb.api.keywords import Options
    from distrain_nb.backends.base import AnyBackend
    from distrain_nb.backends.settings import Settled

ASK_S = 30.0


def backends() -> Iterator[tuple[str, tuple[Check, ...]]]:
    """Yield the checks of each that is installed, by its title, but for those that need nothing."""
    report("Loading what each place needs")
    for backend in plugins.all_backends():
        report(f"Checking {backend.title}")
        checks = (*backend.checks(), *_of_example(backend))
        if checks:
            yield backend.title, checks
    for name, why in plugins.broken().items():
        yield name, (Check("backend", Health.BROKEN, why, "reinstall it, or remove it"),)


def _of_example(backend: AnyBackend) -> Iterator[Check]:
    """Yield the settings of a small job there, and what the service says of it."""
    if not backend.example:
        return
    options = cast("Options", {"on": backend.name, **backend.example})
    try:
        prepared = api.prepare("pass", **options)
    except OptionError as error:
        yield Check("settings", Health.BROKEN, str(error))
        return
    settled = backend.settings(prepared.job)
    problems, settings = errors(prepared.findings), Config.documented(plugins.settings())
    lacking = [finding.where for finding in problems if finding.where in settings]
    yield from (
        Check("jobs", Health.BROKEN, f.message) for f in problems if f.where not in settings
    )
    if lacking:
        remedy = f"%distrain config {' '.join(f'{name}=…' for name in lacking)} keeps them"
        yield Check("settings", Health.MISSING, f"not set: {', '.join(lacking)}", remedy)
    elif not problems:
        yield Check("settings", Health.GOOD, _complete(settled))
    yield from _answers(backend, settled)


def _complete(settled: Settled) -> str:
    names = ", ".join(name for name, setting in settled.items() if is_detected(setting))
    message = f"complete, with what was found here ({names})" if names else "complete"
    return f"{message}: %distrain config shows and changes them"


def _answers(backend: AnyBackend, settled: Settled) -> list[Check]:
    """Ask the service for half a minute at most, whatever its client does meanwhile."""
    checks: list[Check] = []

    def ask() -> None:
        try:
            checks.extend(backend.access(settled))
        except ImportError:  # the check of packages says so
            return
        except Exception as error:  # a check that breaks is no reason to say nothing of the rest
            checks.append(Check("service", Health.MISSING, f"{type(error).__name__}: {error}"))

    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ASK_S)
    if not asking.is_alive():
        return checks
    late = f"no answer within {ASK_S:.0f} s"
    return [*checks, Check("service", Health.MISSING, late, "check the network and try again")]

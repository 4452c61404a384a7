"""Settings that nobody chose for a job: what was found on this machine, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from distrain_nb.backends.options import declared
from distrain_nb.layout.option import flag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.backends.base import AnyJob

Value: TypeAlias = "str | bool | tuple[str, ...]"
OptionsT = TypeVar("OptionsT")

KEPT = "%distrain config"
MADE_UP = "made up for a rehearsal"


class Found(NamedTuple):
    """The value of a setting, as its option has it, and where it comes from."""

    value: Value
    origin: str

    def __str__(self) -> str:
        """Return the value as people read it."""
        if isinstance(self.value, tuple):
            return ", ".join(self.value)
        return ("on" if self.value else "off") if isinstance(self.value, bool) else self.value


Settled: TypeAlias = "Mapping[str, Found]"


def first(*sources: Settled) -> dict[str, Found]:
    """What each setting is in the first of the sources that has it."""
    settings: dict[str, Found] = {}
    for source in sources:
        settings |= {
            name: item for name, item in source.items() if item.value and name not in settings
        }
    return settings


def text_of(job: AnyJob, name: str, variables: tuple[str, ...] = (), made_up: str = "") -> Found:
    """Return a setting of a job that is a text: as it was chosen or kept, as a variable has it, as
    it was found on this machine, or made up; empty where nobody has made it."""
    layout = job.layout.region or "" if name == "region" else ""
    kept = job.config.region if name == "region" else job.config.of_backends.get(name, "")
    chosen = layout or str(getattr(job.options, name, "") or "")
    if chosen and chosen != kept:
        return Found(chosen, f"the option {flag(name)}")
    if chosen or (name == "region" and kept):
        return Found(kept, KEPT)
    variable = next(filter(job.environ.get, variables), "")
    if variable:
        return Found(job.environ[variable], f"the variable {variable}")
    return job.defaults.get(name) or Found(made_up, MADE_UP if made_up else "")


def ways(name: str, example: str, *more: str) -> str:
    """Say how to make a setting: by its option, for all jobs, or in the place's own ways."""
    kept = f"keep it with %distrain config {name}={example}"
    *others, last = (f"write --{name} {example}", kept, *more)
    return f"{', '.join(others)}, or {last}"


def filled(options: OptionsT, defaults: Settled) -> OptionsT:
    """Return options with what was found for those that nobody chose. Texts NAME=VALUE are joined,
    and the chosen one of a name holds."""
    changed: dict[str, object] = {}
    for item in declared(type(options)).values():
        chosen, found = getattr(options, item.field), defaults.get(item.field)
        if found is None:
            continue
        if chosen == item.default:
            changed[item.field] = found.value
        elif item.form.startswith("NAME=VALUE") and isinstance(found.value, tuple):
            names = {text.partition("=")[0] for text in chosen}
            more = (text for text in found.value if text.partition("=")[0] not in names)
            changed[item.field] = (*more, *chosen)
    own = {name: getattr(options, name) for name in declared(type(options))}
    return type(options)(**{**own, **changed})


def is_found(found: Found) -> bool:
    """Return whether nobody who writes jobs has chosen it."""
    chosen = found.origin in ("", KEPT, MADE_UP) or found.origin.startswith("the option ")
    return bool(found.value) and not chosen


def notes(settled: Settled) -> Iterator[str]:
    """Yield a line for each setting that was found rather than chosen."""
    for name, found in settled.items():
        if is_found(found):
            yield f"{name} {shown(name, found)}, from {found.origin}"


def shown(name: str, found: Found) -> str:
    """Return the value as anybody may see it: of variables only the names."""
    if name == "env" and isinstance(found.value, tuple):
        return ", ".join(text.partition("=")[0] for text in found.value)
    return str(found)

"""Settings with their origin, such as a project that was found on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from distrain_nb.backends.options import declared
from distrain_nb.layout.option import flag

if TYPE_CHECKING:
    from distrain_nb.backends.job import AnyJob

CONFIGURED = "%distrain config"
MADE_UP = "made up for a rehearsal"

Value: TypeAlias = "str | bool | tuple[str, ...]"


class SettingValue(NamedTuple):
    """The value of a setting, in the type of its option, and its origin."""

    value: Value
    origin: str

    def __str__(self) -> str:
        """Return the value in words."""
        if isinstance(self.value, tuple):
            return ", ".join(self.value)
        return ("on" if self.value else "off") if isinstance(self.value, bool) else self.value


Settled: TypeAlias = "Mapping[str, SettingValue]"
OptionsT = TypeVar("OptionsT")


def first_of_each(*sources: Settled) -> dict[str, SettingValue]:
    """Return each setting from the first source that has a value for it."""
    settings: dict[str, SettingValue] = {}
    for source in sources:
        settings |= {
            name: item for name, item in source.items() if item.value and name not in settings
        }
    return settings


def text_of(
    job: AnyJob, name: str, variables: tuple[str, ...] = (), made_up: str = ""
) -> SettingValue:
    """Return the text of a setting of a job, from the first of these origins.

    They are the option or layout, the configuration, *variables* of the environment, the defaults
    of this machine, and *made_up*. The text is empty if no origin has one.
    """
    layout = job.layout.region or "" if name == "region" else ""
    stored = job.config.region if name == "region" else job.config.of_backends.get(name, "")
    chosen = layout or str(getattr(job.options, name, "") or "")
    if chosen and chosen != stored:
        return SettingValue(chosen, f"the option {flag(name)}")
    if chosen or (name == "region" and stored):
        return SettingValue(stored, CONFIGURED)
    variable = next(filter(job.environ.get, variables), "")
    if variable:
        return SettingValue(job.environ[variable], f"the variable {variable}")
    return job.defaults.get(name) or SettingValue(made_up, MADE_UP if made_up else "")


def ways_to_set(name: str, example: str, *more: str) -> str:
    """Say how to set a setting: by option, in the configuration, or in *more* ways of a place."""
    stored = f"keep it with %distrain config {name}={example}"
    *others, last = (f"write --{name} {example}", stored, *more)
    return f"{', '.join(others)}, or {last}"


def with_settings(options: OptionsT, defaults: Settled) -> OptionsT:
    """Return options with *defaults* for those that nobody chose.

    Of an option with texts NAME=VALUE, chosen texts and defaults are joined. A chosen text replaces
    the default of its name.
    """
    changed: dict[str, object] = {}
    for item in declared(type(options)).values():
        chosen, default = getattr(options, item.field), defaults.get(item.field)
        if default is None:
            continue
        if chosen == item.default:
            changed[item.field] = default.value
        elif item.form.startswith("NAME=VALUE") and isinstance(default.value, tuple):
            names = {text.partition("=")[0] for text in chosen}
            more = (text for text in default.value if text.partition("=")[0] not in names)
            changed[item.field] = (*more, *chosen)
    values = {name: getattr(options, name) for name in declared(type(options))}
    return type(options)(**{**values, **changed})


def is_detected(setting: SettingValue) -> bool:
    """Return whether a setting was found: neither chosen, configured nor made up."""
    chosen = setting.origin in ("", CONFIGURED, MADE_UP) or setting.origin.startswith("the option ")
    return bool(setting.value) and not chosen


def setting_notes(settled: Settled) -> Iterator[str]:
    """Yield a line for each setting that was found."""
    for name, setting in settled.items():
        if is_detected(setting):
            yield f"{name} {shown(name, setting)}, from {setting.origin}"


def shown(name: str, setting: SettingValue) -> str:
    """Return the value as text without secrets: of variables only the names."""
    if name == "env" and isinstance(setting.value, tuple):
        return ", ".join(text.partition("=")[0] for text in setting.value)
    return str(setting)

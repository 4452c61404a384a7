"""Options of jobs and backends, declared as fields of a frozen dataclass.

Settings that nobody chose for a job: what was found on this machine, and where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from distrain_nb.layout.options import Option, flag

if TYPE_CHECKING:
    from distrain_nb.backends.base import AnyJob
    from distrain_nb.layout.options import Choices

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

    `form` is how its value is written and `about` says in a line what it is for. A default of False
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
        "form": form, "help": about, "setting": setting, "like": like, "elsewhere": elsewhere,
        "bare": bare, "topic": topic, "split": read, "several": default == (), "label": label,
        "kind": "combo" if choices or default is False else "text",
        "hint": (form or "no") if label else "", "choices": choices,
        "extra": folded, "request": request, "written_as": written_as,
    }  # fmt: skip
    return field(default=default, repr=shown, metadata=metadata)


def declared(options: type[object]) -> dict[str, Option]:
    """Return the options that a dataclass declares, by their fields, in order."""
    return {**_declared(options)}  # type: ignore[arg-type]  # a class that mypy takes for unhashable


@lru_cache(maxsize=256)
def _declared(options: type[object]) -> dict[str, Option]:
    return {
        item.name: Option(item.name, default=item.default, **item.metadata)
        for item in fields(options)  # type: ignore[arg-type]
    }


def read_options(
    options: type[Options],
    written: Mapping[str, object],
    stored: Mapping[str, str] | None = None,
) -> Options:
    """Return the dataclass with the values of *written*, by field, as the magic or Python has them.

    An absent field has its setting of *stored* (`config.yaml`, by name), or else the default.
    """
    stored = stored or {}
    values: dict[str, object] = {}
    for item in declared(options).values():
        value = _held(item, written[item.field]) if item.field in written else item.default
        if value == item.default and item.setting in stored:
            value = stored[item.setting]
        values[item.field] = value
    return options(**values)


def _held(item: Option, value: object) -> object:
    """Return what the dataclass holds for what was given: texts, unless it is a switch."""
    if item.several:
        if isinstance(value, str):
            return item.split(value) if item.split else (value,)
        return tuple(map(str, value)) if isinstance(value, (list, tuple)) else (str(value),)
    return value if isinstance(value, bool) or not item.form else str(value)


Value: TypeAlias = "str | bool | tuple[str, ...]"
OptionsT = TypeVar("OptionsT")

CONFIGURED = "%distrain config"
MADE_UP = "made up for a rehearsal"


class SettingValue(NamedTuple):
    """The value of a setting, as its option has it, and where it comes from."""

    value: Value
    origin: str

    def __str__(self) -> str:
        """Return the value as people read it."""
        if isinstance(self.value, tuple):
            return ", ".join(self.value)
        return ("on" if self.value else "off") if isinstance(self.value, bool) else self.value


Settled: TypeAlias = "Mapping[str, SettingValue]"


def first_of_each(*sources: Settled) -> dict[str, SettingValue]:
    """Return each setting as the first source has it that has it at all."""
    settings: dict[str, SettingValue] = {}
    for source in sources:
        settings |= {
            name: item for name, item in source.items() if item.value and name not in settings
        }
    return settings


def text_of(
    job: AnyJob, name: str, variables: tuple[str, ...] = (), made_up: str = ""
) -> SettingValue:
    """Return a setting of a job that is a text: as it was chosen or kept, as a variable has it, as
    it was found on this machine, or made up; empty where nobody has made it."""
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
    """Say how to make a setting: by its option, for all jobs, or in the place's own ways."""
    stored = f"keep it with %distrain config {name}={example}"
    *others, last = (f"write --{name} {example}", stored, *more)
    return f"{', '.join(others)}, or {last}"


def with_settings(options: OptionsT, defaults: Settled) -> OptionsT:
    """Return options with what was found for those that nobody chose. Texts NAME=VALUE are joined,
    and the chosen one of a name holds."""
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
    """Return whether nobody who writes jobs has chosen it."""
    chosen = setting.origin in ("", CONFIGURED, MADE_UP) or setting.origin.startswith("the option ")
    return bool(setting.value) and not chosen


def setting_notes(settled: Settled) -> Iterator[str]:
    """Yield a line for each setting that was found rather than chosen."""
    for name, setting in settled.items():
        if is_detected(setting):
            yield f"{name} {shown(name, setting)}, from {setting.origin}"


def shown(name: str, setting: SettingValue) -> str:
    """Return the value as anybody may see it: of variables only the names."""
    if name == "env" and isinstance(setting.value, tuple):
        return ", ".join(text.partition("=")[0] for text in setting.value)
    return str(setting)

"""A study's parts as options are written: `--tune lr=1e-5..1e-1:log`, `--goal min:val/loss`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from distrain_nb.errors import OptionError, did_you_mean, shown
from distrain_nb.layout.durations import duration, seconds
from distrain_nb.tuning.spec import (
    ALGORITHMS,
    SCALES,
    Categorical,
    Condition,
    ConvexStopping,
    DecayCurveStopping,
    Discrete,
    Domain,
    Double,
    Goal,
    HyperbandStopping,
    Integer,
    MedianStopping,
    Parameter,
    Scale,
    Search,
    Stopping,
    StudyEnd,
    Value,
)
from distrain_nb.tuning.words import (
    QUOTED,
    is_number,
    number,
    parts,
    value,
    value_text,
    word,
    written_number,
)

TUNE_FORM = "NAME[PARENT=VALUE|…]=LOW..HIGH|VALUE|…[:log|:reverse-log][,default=VALUE]"
GOAL_FORM = "min|max:METRIC[,threshold=NUMBER[,fraction=NUMBER]]"
SEARCH_FORM = "tpe|gp|random|grid[,seed=N]"
STOP_FORM = "median|decay-curve|convex|hyperband[,SETTING=VALUE…]"
INITIAL_FORM = "NAME=VALUE,…"

AUTO = "auto"
STOPPING: dict[str, type[Stopping]] = {
    "median": MedianStopping,
    "decay-curve": DecayCurveStopping,
    "convex": ConvexStopping,
    "hyperband": HyperbandStopping,
}
_HEAD = re.compile(rf'(?P<name>(?:[^"\[]|{QUOTED})*)(?:\[(?P<condition>.*)\])?', re.DOTALL)
_DIRECTIONS = {"min": "min", "max": "max", "minimize": "min", "maximize": "max"}
_THRESHOLD, _FRACTION = "threshold", "fraction"
_GOALS = re.compile(rf"(?:{QUOTED}|(?!\s(?:{'|'.join(_DIRECTIONS)}):).)+", re.DOTALL)

Settings = TypeVar("Settings")


def parameter(text: str) -> Parameter:
    """Read what `parameter_text` gives. Raises OptionError with what is wrong."""
    head, *rest = parts(text.strip(), "=", 1)
    if not rest:
        raise OptionError(f"expected {TUNE_FORM}, such as lr=1e-5..1e-1:log")
    name, condition = _head(head)
    ranged, *settings = parts(rest[0], ",")
    values, *scales = parts(ranged, ":")
    if len(scales) > 1 or not set(map(str.strip, scales)) <= set(SCALES):
        error = ":".join(scales)
        hint = did_you_mean(error, SCALES)
        raise OptionError(
            f"invalid scale {shown(error)}: expected {', '.join(SCALES)}{hint}; write words that "
            "have a colon in double quotes"
        )
    default = _default(settings)
    scale: Scale = next((scale for scale in SCALES if [scale] == scales), "linear")
    return Parameter(name, _domain(values.strip(), default), scale, condition)


def parameter_text(parameter: Parameter) -> str:
    """Return a parameter as `--tune` has it."""
    domain = parameter.domain
    text = f"{head_text(parameter)}={_domain_text(domain)}"
    if parameter.scale != "linear":
        text += f":{parameter.scale}"
    if domain.default is not None:
        text += f",default={_value_text(domain, domain.default)}"
    return text


def head_text(parameter: Parameter) -> str:
    """Write what stands before a parameter's values: the name, and the condition in brackets."""
    name = parameter.name if is_number(parameter.name) else value_text(parameter.name)
    if parameter.condition is None:
        return name
    listed = "|".join(map(value_text, parameter.condition.values))
    return f"{name}[{value_text(parameter.condition.parent)}={listed}]"


def goal(text: str) -> Goal:
    """Read what `goal_text` gives. Raises OptionError with the form that is allowed."""
    way, *rest = parts(text.strip(), ":", 1)
    if way not in _DIRECTIONS or not rest or not rest[0].strip():
        raise OptionError(f"expected {GOAL_FORM}, such as min:val/loss or max:accuracy")
    metric, *settings = parts(rest[0], ",")
    pairs = _pairs(settings)
    if not pairs.keys() <= {_THRESHOLD, _FRACTION}:
        raise OptionError(f"expected {GOAL_FORM}")
    quoted = metric.strip().startswith('"')
    return Goal(
        word(metric) if quoted else metric.strip(),
        "min" if _DIRECTIONS[way] == "min" else "max",
        float(number(pairs[_THRESHOLD])) if _THRESHOLD in pairs else None,
        float(number(pairs[_FRACTION])) if _FRACTION in pairs else None,
    )


def goals(text: str) -> list[str]:
    """Return the goals in a text, which spaces divide; a metric may have some, too."""
    return [part.strip() for part in _GOALS.findall(text)]


def goal_text(goal: Goal) -> str:
    """Return a goal as `--goal` has it."""
    plain = goal.metric.strip() == goal.metric and not set(goal.metric) & set('",[')
    plain = plain and len(goals(goal.metric)) == 1
    text = f"{goal.direction}:{goal.metric if plain and goal.metric else value_text(goal.metric)}"
    if goal.safety_threshold is not None:
        text += f",{_THRESHOLD}={written_number(goal.safety_threshold)}"
    if goal.safe_fraction is not None:
        text += f",{_FRACTION}={written_number(goal.safe_fraction)}"
    return text


def search(text: str) -> Search:
    """Read what `search_text` gives. Raises OptionError with what is allowed."""
    name, *settings = parts(text.strip(), ",")
    pairs = _pairs(settings)
    if name not in (*ALGORITHMS, AUTO) or not pairs.keys() <= {"seed"}:
        raise OptionError(f"expected {SEARCH_FORM}{did_you_mean(name, ALGORITHMS)}")
    seed = number(pairs["seed"]) if pairs else None
    if isinstance(seed, float):
        raise OptionError(f"invalid seed {seed}: expected a whole number")
    return Search(next((algorithm for algorithm in ALGORITHMS if algorithm == name), None), seed)


def search_text(search: Search) -> str:
    """Return a search as `--search` has it."""
    seed = "" if search.seed is None else f",seed={search.seed}"
    return f"{search.algorithm or AUTO}{seed}"


def stopping(text: str) -> Stopping:
    """Read what `stopping_text` gives. Raises OptionError with what is allowed."""
    name, *settings = parts(text.strip(), ",")
    if name not in STOPPING:
        raise OptionError(f"expected {STOP_FORM}{did_you_mean(name, STOPPING)}")
    return _settings(STOPPING[name], settings)


def stopping_text(stopping: Stopping) -> str:
    """Return a stopping rule as `--stop` has it."""
    name = next(name for name, kind in STOPPING.items() if isinstance(stopping, kind))
    return ",".join([name, *_settings_texts(stopping)])


def end(text: str) -> StudyEnd:
    """Read what `end_text` gives. Raises OptionError with what is allowed."""
    return _settings(StudyEnd, parts(text.strip(), ","))


def end_text(end: StudyEnd) -> str:
    """Write when a study ends early, as text; empty where nothing was set."""
    return ",".join(_settings_texts(end))


def initial(text: str) -> dict[str, Value]:
    """Return values by parameter, of a trial to begin with. Raises OptionError with the form."""
    pairs = _pairs(parts(text.strip(), ","), INITIAL_FORM)
    return {name: value(text_of_value) for name, text_of_value in pairs.items()}


def initial_text(trial: Mapping[str, Value]) -> str:
    """Return a trial to begin with as `--initial` has it."""
    return ",".join(f"{value_text(name)}={value_text(member)}" for name, member in trial.items())


def _head(text: str) -> tuple[str, Condition | None]:
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        raise OptionError(f"expected {TUNE_FORM}")
    if match["condition"] is None:
        return word(match["name"]), None
    parent, *values = parts(match["condition"], "=", 1)
    if not values:
        condition = f"[{match['condition']}]"
        raise OptionError(f"invalid condition {shown(condition)}: expected [PARENT=VALUE|…]")
    return word(match["name"]), Condition(word(parent), tuple(map(value, parts(values[0], "|"))))


def _default(settings: list[str]) -> str | None:
    pairs = _pairs(settings)
    if not pairs.keys() <= {"default"}:
        raise OptionError(f"expected {TUNE_FORM}; write words that have a comma in double quotes")
    return pairs.get("default")


def _domain(text: str, default: str | None) -> Domain:
    if ".." in text and '"' not in text:
        return _range(text, default)
    values = [part.strip() for part in parts(text, "|")]
    if all(map(is_number, values)):
        start = None if default is None else float(number(default))
        return Discrete(tuple(float(number(number_text)) for number_text in values), start)
    return Categorical(tuple(map(word, values)), None if default is None else word(default))


def _range(text: str, default: str | None) -> Double | Integer:
    low, _, high = text.partition("..")
    bounds, start = (number(low), number(high)), None if default is None else number(default)
    if all(isinstance(bound, int) for bound in bounds) and not isinstance(start, float):
        return Integer(int(bounds[0]), int(bounds[1]), start)
    return Double(float(bounds[0]), float(bounds[1]), None if start is None else float(start))


def _domain_text(domain: Domain) -> str:
    if isinstance(domain, (Double, Integer)):
        return f"{domain.low!r}..{domain.high!r}"
    return "|".join(_value_text(domain, member) for member in domain.values)


def _value_text(domain: Domain, member: Value) -> str:
    return repr(member) if isinstance(domain, Double) else value_text(member)


def _pairs(settings: list[str], form: str = "SETTING=VALUE") -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in settings:
        name, *rest = parts(text, "=", 1)
        if not rest or not rest[0].strip() or word(name) in pairs:
            raise OptionError(f"invalid {shown(text)}: expected {form}, each once")
        pairs[word(name)] = rest[0].strip()
    return pairs


def _settings(kind: type[Settings], texts: list[str]) -> Settings:
    """Return a dataclass by its fields' names with dashes; a switch may be written without a
    value."""
    types = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for text in texts:
        name, *rest = parts(text, "=", 1)
        field = name.strip().replace("-", "_")
        if field not in types:
            names = [kind.replace("_", "-") for kind in types]
            hint = did_you_mean(name.strip(), names)
            raise OptionError(
                f"unknown setting {shown(name.strip())}: expected {', '.join(names)}{hint}"
            )
        values[field] = _setting(field, types[field], rest[0].strip() if rest else "true")
    return kind(**values)


def _setting(field: str, kind: str, text: str) -> bool | float | str:
    name = field.replace("_", "-")
    if "bool" in kind:
        if text not in ("true", "false"):
            raise OptionError(f"invalid {name} {shown(text)}: expected true or false")
        return text == "true"
    if "str" in kind:
        return word(text)
    if "int" in kind:
        figure = number(text)
        if isinstance(figure, float):
            raise OptionError(f"invalid {name} {shown(text)}: expected a whole number")
        return figure
    try:
        return float(number(text)) if is_number(text) else float(seconds(text))
    except ValueError:
        raise OptionError(f"invalid {name} {shown(text)}: expected a duration, 2h") from None


def _settings_texts(settings: object) -> Iterator[str]:
    for field in fields(settings):  # type: ignore[arg-type]
        setting = getattr(settings, field.name)
        name = field.name.replace("_", "-")
        if setting == field.default:
            continue
        if isinstance(setting, bool):
            yield name if setting else f"{name}=false"
        elif "float" in str(field.type):
            is_whole = float(setting).is_integer() and setting >= 0
            yield f"{name}={duration(int(setting)) if is_whole else repr(float(setting))}"
        else:
            yield f"{name}={value_text(setting)}"

"""The study of a form: rows of parameters and settings as texts, what is wrong with them, and the
options that they write."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Fix, Severity
from distrain_nb.tuning import options
from distrain_nb.tuning.rules import check
from distrain_nb.tuning.spec import ALGORITHMS, SCALES, StudySpec
from distrain_nb.tuning.text import STOPPING, head_text, initial_text, parameter_text
from distrain_nb.tuning.text import goals as divided
from distrain_nb.ui.form.fields import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.tuning.spec import Parameter, Value

TUNING = "tuning"  # the first part of its paths
LINEAR = "linear"
ROW_FIELDS = (
    Field("name", "Parameter", "text", "lr"),
    Field("values", "Values", "text", "1e-5..1e-1, 16|32|64"),
    Field("scale", "Scale", "combo", LINEAR),
)
INITIAL = Field.of(options.PARTS["initial"])
SETTINGS = tuple(
    Field.of(option)
    for option in options.PARTS.values()
    if option.label and option.field != INITIAL.name
)
_NAMES = [option.name for option in SETTINGS]
_DEFAULT = ",default="

RowT = TypeVar("RowT")


@dataclass(frozen=True)
class ParameterRow:
    """A parameter as it is typed: its name, with a condition if it has one, and its values."""

    name: str = ""
    values: str = ""
    scale: str = ""

    @property
    def text(self) -> str:
        """The value as an option has it."""
        values, comma, default = self.values.strip().partition(_DEFAULT)
        scale = self.scale.strip()
        scaled = f":{scale}" if scale and scale != LINEAR else ""
        return f"{self.name.strip()}={values}{scaled}{comma}{default}"

    @property
    def missing(self) -> tuple[str, str] | None:
        """The field that is still to be filled in, and with what; None where none is."""
        if not self.name.strip():
            return "name", "write the parameter's name, such as lr"
        if not self.values.strip():
            return "values", f"write values for {self.name.strip()}, such as 1e-5..1e-1 or 16|32|64"
        return None

    @classmethod
    def of(cls, parameter: Parameter) -> ParameterRow:
        plain = parameter_text(replace(parameter, scale="linear"))
        name = head_text(parameter)
        scale = "" if parameter.scale == LINEAR else parameter.scale
        return cls(name, plain.removeprefix(f"{name}="), scale)


@dataclass(frozen=True)
class Tuning:
    """The texts in the section's fields; without rows there is no study.

    `settings` has those of `SETTINGS` that aren't empty, by name.
    """

    rows: tuple[ParameterRow, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    initial: tuple[str, ...] = ()

    @classmethod
    def of(cls, spec: StudySpec) -> Tuning:
        """Make the form's fields of a study. Goals are divided by spaces."""
        texts = options.texts(spec)
        goals, initial = (list(map(str, texts.pop(name, []))) for name in ("goal", "initial"))
        settings = {f.name: str(texts[f.name]) for f in SETTINGS if f.name in texts}
        rows = tuple(ParameterRow.of(parameter) for parameter in spec.parameters)
        return cls(rows, _held({"goal": " ".join(goals), **settings}), tuple(initial))

    def text(self, path: str) -> str:
        """Return the text that a field shows; `path` is behind `tuning.`: `0.name`, `goal`,
        `initial.0`."""
        first, dot, last = path.partition(".")
        if first == INITIAL.name:
            return self.initial[int(last)]
        return str(getattr(self.rows[int(first)], last)) if dot else self.settings.get(first, "")

    def typed(self, path: str, text: str) -> Tuning:
        """Return the study with another text in a field."""
        first, dot, last = path.partition(".")
        if first == INITIAL.name:
            return replace(self, initial=_with(self.initial, int(last), text))
        if not dot:
            return replace(self, settings=_held({**self.settings, first: text}))
        row = replace(self.rows[int(first)], **{last: text})
        return replace(self, rows=_with(self.rows, int(first), row))

    def added(self) -> Tuning:
        """Return the study with one more row."""
        return replace(self, rows=(*self.rows, ParameterRow()))

    def removed(self, number: int) -> Tuning:
        """Return the study without a row; the last row takes the settings along."""
        rows = self.rows[:number] + self.rows[number + 1 :]
        return replace(self, rows=rows) if rows else Tuning()

    def with_initial(self) -> Tuning:
        """Return the study with one more trial to begin with."""
        return replace(self, initial=(*self.initial, ""))

    def without_initial(self, number: int) -> Tuning:
        """Return the study without a trial to begin with."""
        return replace(self, initial=self.initial[:number] + self.initial[number + 1 :])

    def words(self) -> list[str]:
        """Return the options of a cell, of all that can be read."""
        return list(options.printed(self._read()[0])) if self.rows else []

    def findings(self, place: str) -> Iterator[Finding]:
        """Yield everything that is wrong: what can't be read, or else what the rules say."""
        if not self.rows:
            return
        spec, unreadable = self._read()
        yield from unreadable
        if not unreadable:
            for finding in check(spec, place):
                fixes = tuple(_of_texts(fix, spec) for fix in finding.fixes)
                yield replace(finding, where=self._path(finding.where, spec), also=(), fixes=fixes)

    def _read(self) -> tuple[StudySpec, list[Finding]]:
        """Read the study from the form, with findings for the fields that can't be read."""
        spec, unreadable = StudySpec((), ()), []
        parameters: list[Parameter] = []
        initial: list[Mapping[str, Value]] = []
        for number, row in enumerate(self.rows):
            if missing := row.missing:
                field, needed = missing
                severity = (
                    Severity.ERROR if row.name.strip() or row.values.strip() else Severity.INFO
                )
                where = f"{TUNING}.{number}.{field}"
                unreadable.append(Finding("field-empty", severity, where, needed))
                continue
            try:
                parameters += options.study({"tune": [row.text]}).parameters
            except OptionError as error:
                path = f"{TUNING}.{number}.{'values' if row.name.strip() else 'name'}"
                unreadable.append(_unreadable(path, str(error)))
        for number, trial in enumerate(self.initial):
            if not trial.strip():
                where, needed = f"{TUNING}.{INITIAL.name}.{number}", "write values, such as lr=0.01"
                unreadable.append(Finding("field-empty", Severity.INFO, where, needed))
                continue
            try:
                initial += options.study({"initial": [trial]}).initial
            except OptionError as error:
                unreadable.append(_unreadable(f"{TUNING}.{INITIAL.name}.{number}", str(error)))
        for name in _NAMES:
            text = self.settings.get(name, "").strip()
            value = divided(text) if name == "goal" else text
            try:
                spec = options.changed(spec, {name: value}) if text else spec
            except OptionError as error:
                unreadable.append(_unreadable(f"{TUNING}.{name}", str(error)))
        edited = spec.edited(parameters=tuple(parameters), initial=tuple(initial))
        return options.changed(edited, {}), unreadable

    def _path(self, where: str, spec: StudySpec) -> str:
        """Return the field of a place that the rules name, such as `--tune lr`."""
        option, _, value = where.partition(" ")
        if option == "--initial":
            numbers = [n for n, trial in enumerate(spec.initial) if initial_text(trial) == value]
            return f"{TUNING}.{INITIAL.name}.{numbers[0] if numbers else 0}"
        if option == "--tune":
            numbers = [n for n, row in enumerate(self.rows) if row.name.strip() == value]
            return f"{TUNING}.{numbers[0] if numbers else 0}.values"
        name = option.removeprefix("--").replace("-", "_")
        return f"{TUNING}.{name if name in _NAMES else 'goal'}"


def offered(tuning: Tuning) -> dict[str, list[list[object]]]:
    """Return the lists of its fields, by path; see `view.options`."""
    scales: list[list[object]] = [
        ["" if scale == LINEAR else scale, scale, True] for scale in SCALES
    ]
    lists: dict[str, list[list[object]]] = {
        f"{TUNING}.{number}.scale": scales for number in range(len(tuning.rows))
    }
    if tuning.rows:
        lists[f"{TUNING}.search"] = [[algorithm, "", True] for algorithm in ALGORITHMS]
        lists[f"{TUNING}.stop"] = [["", "never", True], *([kind, "", True] for kind in STOPPING)]
        for name in ("measurement", "noise"):
            words = options.PARTS[name].words
            default: list[object] = ["", "default of the place", True]
            lists[f"{TUNING}.{name}"] = [default, *([word, "", True] for word in words)]
    return lists


def _held(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the fields that aren't empty."""
    return {name: text for name, text in texts.items() if text}


def _with(rows: tuple[RowT, ...], number: int, row: RowT) -> tuple[RowT, ...]:
    return (*rows[:number], row, *rows[number + 1 :])


def _unreadable(path: str, why: str) -> Finding:
    return Finding("field-unreadable", Severity.ERROR, path, why)


def _of_texts(fix: Fix[StudySpec], spec: StudySpec) -> Fix[Tuning]:
    """Return a repair of a study, as one of the texts that say it."""
    return Fix(fix.label, lambda _: Tuning.of(fix.apply(spec)))

"""The view of a layout being edited, as plain data; the page itself decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distrain_nb.backends.plugins import all_backends, choices
from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding, Severity, errors
from distrain_nb.layout import Role
from distrain_nb.layout.case import TYPICAL_STEP_S
from distrain_nb.layout.choices import roles
from distrain_nb.layout.formats import exports_of
from distrain_nb.layout.gain import article_comparison, duration, gain
from distrain_nb.layout.place import places
from distrain_nb.layout.totals import totals
from distrain_nb.layout.traffic import links_of, size, traffic
from distrain_nb.ui.form.fields import (
    POOL_FIELDS,
    SETTINGS,
    TITLES,
    Field,
    columns,
    roles_shown,
    roles_to_add,
    settings,
    text_of,
)
from distrain_nb.ui.form.own import OWN_PREFIX, own_choices, own_fields
from distrain_nb.ui.form.picture import picture
from distrain_nb.ui.form.tuning import INITIAL, ROW_FIELDS, TUNING
from distrain_nb.ui.form.tuning import SETTINGS as TUNING_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from distrain_nb.layout import Layout
    from distrain_nb.layout.choices import Choice
    from distrain_nb.ui.form.cost import FormCosts
    from distrain_nb.ui.form.editing import Editing, History

_FIRST_EXPORTS = ("options", "successor")
_LABELS = {"on": "Where"} | {field.name: field.label for field in SETTINGS}
_TUNING_LABELS = {field.name: field.label for field in (*ROW_FIELDS, *TUNING_SETTINGS)}
_POOL_LABELS = {field.name: field.label for field in POOL_FIELDS}


def view(
    history: History,
    gradient_bytes: int,
    step_s: float = TYPICAL_STEP_S,
    hints: Mapping[str, str] | None = None,
    costs: FormCosts | None = None,
) -> dict[str, Any]:
    """Return everything that changes with the layout, except the lists of what fits; `hints` is
    what stands in empty fields, for settings that were found on this machine; `costs` has the
    prices that are known."""
    editing = history.now
    layout = editing.layout
    findings = editing.findings()
    cost = costs.view(layout, broken=bool(errors(findings))) if costs else None
    return {
        "cost": cost,
        "on": layout.on,
        "places": _places(),
        "settings": [
            {**_field(editing, field, path), **_hint(path, hints or {})}
            for path, field in (
                *((field.name, field) for field in settings(layout)),
                *own_fields(layout.on),
            )
        ],
        "columns": [[field.name, field.label] for field in columns(layout)],
        "pools": [_pool(editing, role) for role in roles_shown(layout)],
        "tuning": _tuning(editing),
        "addable": [[role.value, TITLES[role]] for role in roles_to_add(layout)],
        "findings": [
            {**_finding(finding), **_saves(editing, finding, costs if cost else None)}
            for finding in findings
        ],
        "verdict": findings_summary(findings),
        "totals": list(_totals(layout)),
        "picture": picture(layout),
        "gradient": size(gradient_bytes),
        "step": duration(step_s),
        "traffic": _traffic(layout, gradient_bytes),
        "gain": _gain(layout, gradient_bytes, step_s),
        "exports": list(_exports(layout)),
        "undo": bool(history.past),
        "redo": bool(history.future),
        "repaired": _repaired(history),
    }


def _repaired(history: History) -> dict[str, Any]:
    """Return the repair that was just made, and the pool or setting that it stands beside: where it
    was wrong, if that is still there."""
    done, shown = history.repaired, set(roles_shown(history.now.layout))
    if done is None:
        return {}
    names = [place.partition(".")[0] for place in done.places]
    if TUNING in names:
        return {"label": done.label, "beside": TUNING}
    remaining = [name for name in names if name not in set(Role) or Role(name) in shown]
    return {"label": done.label, "beside": (remaining or [""])[0]}


def options(layout: Layout) -> dict[str, list[list[Any]]]:
    """Return the choices of each field, by its path.

    A choice is a value, its description, whether it fits the layout, and words for a search.
    """
    paths = [field.name for field in settings(layout)]
    for role in roles_shown(layout):
        paths += [f"{role.value}.{field.name}" for field in POOL_FIELDS]
    lists = {**{path: choices(layout, path) for path in paths}, **own_choices(layout)}
    offered = {path: [_choice(path, choice) for choice in lists[path]] for path in lists}
    return {path: choices_of for path, choices_of in offered.items() if choices_of}


def _places() -> list[list[str]]:
    """Return the backends that are installed, with their titles, and places that only have
    layouts."""
    titles = {backend.name: backend.title for backend in all_backends()}
    titles |= {place.name: place.title for place in places().values()}
    return [[name, title[:1].upper() + title[1:]] for name, title in titles.items()]


def findings_summary(findings: Iterable[Finding]) -> str:
    """Return the findings in a few words."""
    severities = [finding.severity for finding in findings]
    counted = [
        f"{count} {singular if count == 1 else many}"
        for severity, singular, many in (
            (Severity.ERROR, "error", "errors"),
            (Severity.WARNING, "warning", "warnings"),
            (Severity.INFO, "remark", "remarks"),
        )
        if (count := severities.count(severity))
    ]
    return ", ".join(counted) or "Everything fits"


def _tuning(editing: Editing) -> dict[str, Any]:
    """Return the rows of parameters, the settings of a study that has some, and its first
    trials."""
    rows = range(len(editing.tuning.rows))
    return {
        "rows": [[_tuned(editing, field, f"{number}.") for field in ROW_FIELDS] for number in rows],
        "settings": [_tuned(editing, field) for field in TUNING_SETTINGS if rows],
        "initial": [
            _tuned(editing, INITIAL, number=f".{number}")
            for number in range(len(editing.tuning.initial))
        ],
    }


def _tuned(editing: Editing, field: Field, row: str = "", number: str = "") -> dict[str, Any]:
    """Return a field's data; its `name` is its class in the page, with a prefix as other fields
    have it too."""
    shown = _field(editing, field, f"{TUNING}.{row}{field.name}{number}")
    return {**shown, "name": f"tuned-{field.name}"}


def label_of(path: str) -> str:
    """Return the form's label of a place in a layout, such as `Workers, count`."""
    name, _, field = path.partition(".")
    if name == TUNING:
        number, dot, field = field.rpartition(".")
        if number == INITIAL.name:
            return f"Initial trial {int(field) + 1}"
        label = _TUNING_LABELS.get(field, field)
        return (
            f"Parameter {int(number) + 1}, {label.lower()}" if dot else f"Tuning, {label.lower()}"
        )
    if name == OWN_PREFIX:
        return field.replace("_", " ").capitalize()
    if name not in set(Role):
        return _LABELS.get(name, name)
    title = TITLES[Role(name)]
    return f"{title}, {_POOL_LABELS.get(field, field).lower()}" if field else title


def _field(editing: Editing, field: Field, path: str) -> dict[str, Any]:
    return {
        "path": path,
        "name": field.name,
        "label": field.label,
        "kind": field.kind,
        "hint": field.hint,
        "extra": field.extra,
        "text": editing.text(path),
    }


def _hint(path: str, hints: Mapping[str, str]) -> dict[str, str]:
    name = path.rpartition(".")[2]
    return {"hint": hints[name]} if name in hints else {}


def _pool(editing: Editing, role: Role) -> dict[str, Any]:
    layout = editing.layout
    shown = list(columns(layout))
    extras = [f for f in POOL_FIELDS if f.extra and _is_wanted(layout, role, f)]
    return {
        "role": role.value,
        "title": TITLES[role],
        "fields": [_field(editing, field, f"{role.value}.{field.name}") for field in shown],
        "extras": [_field(editing, field, f"{role.value}.{field.name}") for field in extras],
        "removable": layout.pool(role) is not None,
        "sizable": role is Role.REDUCERS and any(field.name == "machine" for field in shown),
    }


def _is_wanted(layout: Layout, role: Role, field: Field) -> bool:
    path = f"{role.value}.{field.name}"
    return bool(text_of(layout, path) or choices(layout, path))


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "places": [[where, label_of(where)] for where in finding.places],
        "message": finding.message,
        "fixes": [fix.label for fix in finding.fixes],
    }


def _saves(editing: Editing, finding: Finding, costs: FormCosts | None) -> dict[str, list[str]]:
    """Return what each repair saves, in words, where any does."""
    if costs is None:
        return {}
    saved = [
        costs.saves(editing.layout, editing.repaired(finding, fix).layout) for fix in finding.fixes
    ]
    return {"saves": saved} if any(saved) else {}


def _choice(path: str, choice: Choice) -> list[Any]:
    value = "" if choice.value is None else str(choice.value)
    detail = choice.label.removeprefix(value).removeprefix(" · ")
    if path.endswith(".accelerator"):
        value, _, detail = choice.label.partition(" · ")
        value, detail = ("", value) if choice.value is None else (value, detail)
    found_by = [choice.has, choice.takes] if choice.has or choice.takes else []
    return [value, detail, choice.fits, *found_by]


def _totals(layout: Layout) -> Iterator[list[str]]:
    """Yield the sums as pairs of a figure and what it counts."""
    sums, choices = totals(layout), len(layout.variants())
    if choices > 1:
        yield ["first", f"of {choices} choices"]
    place = places().get(layout.on)
    # Where no tables know machines, a job without pools has one replica; only GPUs are named.
    in_tables = place is not None and place.offers is not None
    replicas = sums.replicas if in_tables or [*layout.pools()] else 1
    yield [f"{replicas:,}", "replica" if replicas == 1 else "replicas"]
    if in_tables or sums.accelerators:
        yield [f"{sums.accelerators:,}", "accelerators" if in_tables else "GPUs"]
    if in_tables:
        yield [f"{sums.vcpu:,}", "vCPU"]
        yield [f"{sums.memory_gb:,.0f}", f"{sums.memory_unit} memory"]
        yield [f"{sums.training_gbps:,.0f}", "Gbit/s out of workers"]
    if sums.reduction_gbps:
        yield [f"{sums.reduction_gbps:,.0f}", "Gbit/s into reducers"]
    if sums.bare:
        yield ["?", f"not counted: {', '.join(sums.bare)}"]


def _traffic(layout: Layout, gradient_bytes: int) -> list[list[str]]:
    """Return the ways to add gradients up, where that can be told: a name, bytes, latency, time
    each."""
    try:
        rows = traffic(layout, gradient_bytes).table().rows
    except OptionError:
        return []
    return [list(row) for row in rows] if Role.REDUCERS in roles(layout.on) else []


def _gain(layout: Layout, gradient_bytes: int, step_s: float) -> str:
    """Say what reducers bring to a step, and what the article measured; empty without any."""
    if Role.REDUCERS not in roles(layout.on):
        return ""
    try:
        estimate = str(gain(gradient_bytes, links_of(layout), step_s))
    except OptionError:
        return ""
    lines = (estimate, article_comparison(layout))
    return " ".join(f"{line[0].upper()}{line[1:]}." for line in lines if line)


def _exports(layout: Layout) -> Iterator[list[str]]:
    """Name, title and text of the forms, and what they leave out; the magic's own first."""
    for form in sorted(exports_of(layout.on), key=lambda form: form.name not in _FIRST_EXPORTS):
        try:
            text, lost = form.text(layout), not_in_form(map(label_of, form.left_out(layout)))
        except OptionError as error:
            text, lost = f"# {error}\n", ""
        yield [form.name, form.title, text, lost]


def not_in_form(labels: Iterable[str], before: str = "") -> str:
    """Say which fields an export has no place for, behind what was said of others."""
    lost = ", ".join(labels)
    if not lost:
        return before
    return f"{before}, {lost}" if before else f"Not in this form: {lost}"

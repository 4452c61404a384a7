"""Layouts in the forms of their places: exact texts to copy, and the same forms read back."""

from __future__ import annotations

from distrain_nb.errors import OptionError, shown
from distrain_nb.findings import Finding, Severity
from distrain_nb.layout.formats.form import Export, as_json
from distrain_nb.layout.formats.imported import Imported
from distrain_nb.layout.formats.reading import read_any
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.place import place_of, places
from distrain_nb.layout.text import printed
from distrain_nb.layout.words import heading

__all__ = [
    "Export",
    "Imported",
    "all_exports",
    "as_json",
    "exported",
    "exports",
    "exports_of",
    "left_out",
    "read_any",
]

_OPTIONS = Export("options", "%%distrain", lambda it: heading(printed(it)) + "\n")
_YAML = Export("yaml", "layouts/NAME.yaml", lambda it: it.to_yaml())


def exports_of(name: str) -> tuple[Export, ...]:
    """Return the forms of a place's layouts: its own, the magic's options, and YAML.

    Options for a place that has ended would start nothing.
    """
    place = place_of(name)
    options = () if place and place.successor else (_OPTIONS,)
    return (*(place.exports if place else ()), *options, _YAML)


def all_exports() -> tuple[Export, ...]:
    """Return the forms of all places."""
    return tuple(dict.fromkeys(form for name in places() for form in exports_of(name)))


def exports(layout: Layout) -> dict[str, str]:
    """Return every form of a layout by the form's name, as text to copy."""
    return {form.name: form.text(layout) for form in exports_of(layout.on)}


def exported(layout: Layout, form: str, name: str) -> str:
    """Return one form of the layout of a job, under the job's name where the form has names.
    Raises OptionError for a form that there isn't at the layout's place."""
    forms = {item.name: item for item in exports_of(layout.on)}
    if form not in forms:
        names = ", ".join(forms)
        raise OptionError(f"invalid --as {shown(form)}: on {layout.title} there are {names}")
    named = forms[form].named
    return named(layout, name) if named else forms[form].text(layout)


def left_out(imported: Imported) -> tuple[Finding, ...]:
    """Return a finding for everything in the imported text that a layout has no place for."""
    return tuple(
        Finding(
            "import-left-out",
            Severity.INFO,
            path,
            _why(path),
        )
        for path in imported.left_out
    )


def _why(path: str) -> str:
    if path.startswith("--config "):
        return f"the file {path.removeprefix('--config ')} is not here: paste what is in it, too."
    return f"{path} is not part of a layout and was left out."

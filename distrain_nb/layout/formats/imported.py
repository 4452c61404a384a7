"""A layout that was read from another form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from distrain_nb.layout.layout import Layout


@dataclass(frozen=True)
class Imported:
    """A layout read from another form, the paths of what a layout has no place for, and the script
    that runs on it with its arguments, as the words behind `%distrain run`. `values` has what is at
    those paths, as far as it can be read."""

    form: str
    layout: Layout
    left_out: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict, compare=False)

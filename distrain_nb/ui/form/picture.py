"""A picture of the cluster: the pools, their replicas and accelerators, and what they exchange."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from distrain_nb.layout import Role
from distrain_nb.layout.catalog import short_name
from distrain_nb.layout.placed import Placed, job_of
from distrain_nb.ui.form.fields import TITLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.layout import Layout

WIDTH = 560
_TRAINING = (Role.PRIMARY, Role.WORKERS)
_BETWEEN = {Role.REDUCERS: "gradients", Role.SERVERS: "parameters"}

_HEAD, _PAD, _GAP, _WIRE = 38, 12, 12, 34
_CELL, _CELLS_A_ROW, _MOST_CELLS = 7, 4, 16
_MACHINE_GAP, _MOST_ROWS = 5, 3
_CHARACTER = 6.4


@dataclass(frozen=True)
class Panel:
    """A pool as it is drawn: where, and how many machines of how many accelerators."""

    role: Role
    title: str
    subtitle: str
    replicas: int
    accelerators: int
    x: float = 0
    y: float = 0
    width: float = 0

    @property
    def machine_width(self) -> float:
        cells = min(self.accelerators, _CELLS_A_ROW) or 2
        return cells * _CELL + 4

    @property
    def machine_height(self) -> float:
        cells = min(self.accelerators, _MOST_CELLS)
        return max(-(-cells // _CELLS_A_ROW), 1) * _CELL + 4

    @property
    def a_row(self) -> int:
        """Machines side by side."""
        step = self.machine_width + _MACHINE_GAP
        return max(int((self.width - 2 * _PAD + _MACHINE_GAP) // step), 1)

    @property
    def shown(self) -> int:
        """Machines that are drawn; where there are more, the last place is for saying so."""
        room = self.a_row * _MOST_ROWS
        return self.replicas if self.replicas <= room else room - min(self.a_row - 1, 2) - 1

    @property
    def height(self) -> float:
        rows = min(-(-self.replicas // self.a_row), _MOST_ROWS)
        machines = rows * (self.machine_height + _MACHINE_GAP) - _MACHINE_GAP if rows else 0
        return _HEAD + max(machines, 8) + _PAD

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def centre(self) -> float:
        return self.x + self.width / 2


def picture(layout: Layout) -> str:
    """The cluster as SVG. Colours are those of the page's theme, by role."""
    panels = [_panel(placed) for placed in job_of(layout).pools]
    above = [p for p in panels if p.role not in _BETWEEN]
    below = [p for p in panels if p.role in _BETWEEN]
    above = _in_a_line(above, 0)
    floor = max((p.bottom for p in above), default=0)
    below = _in_a_line(below, floor + _WIRE if above else 0)
    height = max((p.bottom for p in (*above, *below)), default=0)
    parts = [*_wires(above, below, floor), *(_drawn(p) for p in (*above, *below))]
    size = f'viewBox="-1 -1 {WIDTH + 2} {height + 2:g}"'
    return (
        f'<svg class="dn-cluster" xmlns="http://www.w3.org/2000/svg" {size} role="img" '
        f'aria-label="{escape(described(layout))}">{"".join(parts)}</svg>'
    )


def described(layout: Layout) -> str:
    """The picture in words."""
    panels = (_panel(placed) for placed in job_of(layout).pools)
    said = ", ".join(f"{p.title} × {p.replicas} ({p.subtitle})" for p in panels)
    return f"The cluster: {said or 'nothing yet'}"


def _panel(placed: Placed) -> Panel:
    pool = placed.pool
    equipped = placed.accelerator and placed.accelerators
    what = [pool.machine or ("this machine" if placed.catalog and not pool.gpus else "?")]
    if equipped:
        what.append(f"{placed.accelerators} × {short_name(placed.accelerator or '')}")
    return Panel(
        placed.role,
        TITLES[placed.role],
        " · ".join(what),
        max(pool.replicas, 0),
        placed.accelerators if equipped else 0,
    )


def _in_a_line(panels: list[Panel], y: float) -> list[Panel]:
    """Panels side by side over the whole width, each as wide as its text and machines want."""
    if not panels:
        return []
    wishes = [_wish(panel) for panel in panels]
    spare = WIDTH - sum(wishes) - _GAP * (len(panels) - 1)
    growing = sum(panel.replicas for panel in panels) or 1
    x, placed = 0.0, []
    for panel, wish in zip(panels, wishes, strict=True):
        grown = spare * (panel.replicas / growing if spare > 0 else wish / sum(wishes))
        width = wish + grown
        placed.append(_moved(panel, x, y, width))
        x += width + _GAP
    tallest = max(placed, key=lambda panel: panel.height).height
    return [_moved(panel, panel.x, y + 0 * tallest, panel.width) for panel in placed]


def _wish(panel: Panel) -> float:
    text = max(len(panel.subtitle), len(panel.title) + 6) * _CHARACTER
    return max(text + 2 * _PAD, 110)


def _moved(panel: Panel, x: float, y: float, width: float) -> Panel:
    from dataclasses import replace

    return replace(panel, x=x, y=y, width=width)


def _wires(above: list[Panel], below: list[Panel], floor: float) -> Iterator[str]:
    training = [panel for panel in above if panel.role in _TRAINING]
    for hub in below:
        for panel in training:
            yield _wire(panel, hub)
        yield _label(hub.centre + 8, floor + _WIRE / 2 + 4, _BETWEEN[hub.role])
    if len(training) == 2 and not below:
        left, right = training
        y = left.y + _HEAD / 2
        yield f'<path class="dn-wire" d="M{left.x + left.width:g} {y:g}H{right.x:g}"/>'


def _wire(panel: Panel, hub: Panel) -> str:
    middle = hub.y - _WIRE / 2
    return (
        f'<path class="dn-wire" d="M{panel.centre:g} {panel.bottom:g}V{middle:g}'
        f'H{hub.centre:g}V{hub.y:g}"/>'
    )


def _label(x: float, y: float, text: str) -> str:
    return f'<text class="dn-soft" x="{x:g}" y="{y:g}">{text}</text>'


def _drawn(panel: Panel) -> str:
    x, y = panel.x, panel.y
    return (
        f'<g class="dn-{panel.role}">'
        f'<rect class="dn-panel" x="{x:g}" y="{y:g}" width="{panel.width:g}" '
        f'height="{panel.height:g}" rx="6"/>'
        f'<text class="dn-title" x="{x + _PAD:g}" y="{y + 16:g}">{panel.title}'
        f'<tspan class="dn-soft" dx="5">× {panel.replicas}</tspan></text>'
        f'<text class="dn-soft" x="{x + _PAD:g}" y="{y + 30:g}">{escape(panel.subtitle)}</text>'
        f"{''.join(_machines(panel))}</g>"
    )


def _machines(panel: Panel) -> Iterator[str]:
    step_x = panel.machine_width + _MACHINE_GAP
    step_y = panel.machine_height + _MACHINE_GAP
    for number in range(panel.shown):
        row, column = divmod(number, panel.a_row)
        yield _machine(panel, panel.x + _PAD + column * step_x, panel.y + _HEAD + row * step_y)
    if panel.shown < panel.replicas:
        row, column = divmod(panel.shown, panel.a_row)
        x = panel.x + _PAD + column * step_x + 2
        y = panel.y + _HEAD + row * step_y + panel.machine_height / 2 + 4
        yield _label(x, y, f"+ {panel.replicas - panel.shown}")


def _machine(panel: Panel, x: float, y: float) -> str:
    cells = "".join(
        f"M{x + 2.5 + column * _CELL:g} {y + 2.5 + row * _CELL:g}h6v6h-6z"
        for row, column in (
            divmod(n, _CELLS_A_ROW) for n in range(min(panel.accelerators, _MOST_CELLS))
        )
    )
    return (
        f'<rect class="dn-machine" x="{x:g}" y="{y:g}" width="{panel.machine_width:g}" '
        f'height="{panel.machine_height:g}" rx="2"/>'
        + (f'<path class="dn-cells" d="{cells}"/>' if cells else "")
    )

"""A picture of the cluster: the pools, their replicas and accelerators, and what they exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from distrain_nb.layout import Role
from distrain_nb.layout.catalog import short_name
from distrain_nb.layout.resolved import ResolvedPool, resolve
from distrain_nb.ui.form.fields import TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.layout import Layout

WIDTH = 460
_TRAINING = (Role.PRIMARY, Role.WORKERS)
_BETWEEN = {Role.REDUCERS: "gradients", Role.SERVERS: "parameters"}

_TITLE, _LINE, _PAD, _GAP, _WIRE = 24, 13, 11, 12, 36
_CELL, _CELLS_A_ROW, _MOST_CELLS = 7, 4, 16
_MACHINE_GAP, _MOST_ROWS = 5, 3
_CHARACTER, _NARROWEST = 5.9, 96


@dataclass(frozen=True)
class Panel:
    """A pool as it is drawn: its words, its machines with their accelerators, and its place."""

    role: Role
    machine: str
    accelerator: str
    replicas: int
    accelerators: int
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    @property
    def title(self) -> str:
        return TITLES[self.role]

    @property
    def words(self) -> list[str]:
        """The lines below the title."""
        return [line for line in (self.machine, self.accelerator) if line]

    @property
    def head(self) -> float:
        """How high the words are."""
        return _TITLE + _LINE * len(self.words) + 2

    @property
    def wanted_width(self) -> float:
        longest = max(map(len, [*self.words, f"{self.title} × 000"]))
        return max(longest * _CHARACTER + 2 * _PAD, _NARROWEST)

    @property
    def wanted_height(self) -> float:
        rows = min(-(-self.replicas // self.a_row), _MOST_ROWS) or 1
        return self.head + rows * (self.machine_height + _MACHINE_GAP) - _MACHINE_GAP + _PAD

    @property
    def machine_width(self) -> float:
        return (min(self.accelerators, _CELLS_A_ROW) or 2) * _CELL + 4

    @property
    def machine_height(self) -> float:
        cells = min(self.accelerators, _MOST_CELLS)
        return max(-(-cells // _CELLS_A_ROW), 1) * _CELL + 4

    @property
    def a_row(self) -> int:
        """How many machines fit side by side."""
        step = self.machine_width + _MACHINE_GAP
        return max(int((self.width - 2 * _PAD + _MACHINE_GAP) // step), 1)

    @property
    def shown(self) -> int:
        """How many machines are drawn; where there are more, the last places say how many."""
        room = self.a_row * _MOST_ROWS
        return self.replicas if self.replicas <= room else max(room - 2, 0)

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def centre(self) -> float:
        return self.x + self.width / 2


def picture(layout: Layout) -> str:
    """Return the cluster as SVG. Its colours are the page's, one a role."""
    panels = [_panel(resolved) for resolved in resolve(layout).pools]
    above = _in_a_line([p for p in panels if p.role not in _BETWEEN], 0)
    floor = max((p.bottom + _WIRE for p in above), default=0)
    below = _in_a_line([p for p in panels if p.role in _BETWEEN], floor)
    height = max((p.bottom for p in (*above, *below)), default=0)
    parts = [*_wires(above, below), *map(_drawn, (*above, *below))]
    return (
        f'<svg class="dn-cluster" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="-1 -1 {WIDTH + 2} {height + 2:g}" aria-label="{escape(_in_words(panels))}">'
        f"{''.join(parts)}</svg>"
    )


def _in_words(panels: Iterable[Panel]) -> str:
    texts = (" ".join([f"{panel.title} × {panel.replicas}", *panel.words]) for panel in panels)
    return f"The cluster: {', '.join(texts) or 'nothing yet'}"


def _panel(resolved: ResolvedPool) -> Panel:
    pool, name, count = resolved.pool, resolved.accelerator, resolved.accelerators
    return Panel(
        resolved.role,
        pool.machine or "",
        f"{count} × {short_name(name)} each" if name and count else "",
        max(pool.replicas, 0),
        count if name else 0,
    )


def _in_a_line(panels: list[Panel], y: float) -> list[Panel]:
    """Return the panels side by side over the whole width; what is left over goes to the larger
    pools."""
    room = WIDTH - _GAP * (len(panels) - 1)
    total = sum(panel.wanted_width for panel in panels)
    replicas = sum(panel.replicas for panel in panels) or 1
    x, line = 0.0, []
    for panel in panels:
        if total > room:
            width = panel.wanted_width * room / total
        else:
            width = panel.wanted_width + (room - total) * panel.replicas / replicas
        line.append(replace(panel, x=x, y=y, width=width))
        x += width + _GAP
    height = max((panel.wanted_height for panel in line), default=0)
    return [replace(panel, height=height) for panel in line]


def _wires(above: list[Panel], below: list[Panel]) -> Iterator[str]:
    training = [panel for panel in above if panel.role in _TRAINING]
    for hub in below:
        middle = hub.y - _WIRE / 2
        for panel in training:
            way = f"M{panel.centre:g} {panel.bottom:g}V{middle:g}H{hub.centre:g}V{hub.y:g}"
            yield f'<path class="dn-wire" d="{way}"/>'
        yield _text(hub.centre + 7, hub.y - 6, _BETWEEN[hub.role])
    if len(training) == 2 and not below:
        first, right = training
        way = f"M{first.x + first.width:g} {first.bottom / 2:g}H{right.x:g}"
        yield f'<path class="dn-wire" d="{way}"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text class="dn-soft" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _drawn(panel: Panel) -> str:
    x, y = panel.x + _PAD, panel.y
    words = (_text(x, y + 31 + _LINE * n, line) for n, line in enumerate(panel.words))
    return (
        f'<g class="dn-{panel.role}"><rect class="dn-panel" x="{panel.x:g}" y="{y:g}" '
        f'width="{panel.width:g}" height="{panel.height:g}" rx="6"/>'
        f'<text class="dn-title" x="{x:g}" y="{y + 17:g}">{panel.title}'
        f'<tspan class="dn-soft" dx="5">× {panel.replicas}</tspan></text>'
        f"{''.join([*words, *_machines(panel)])}</g>"
    )


def _machines(panel: Panel) -> Iterator[str]:
    for number in range(panel.shown + (panel.shown < panel.replicas)):
        row, column = divmod(number, panel.a_row)
        x = panel.x + _PAD + column * (panel.machine_width + _MACHINE_GAP)
        y = panel.y + panel.head + row * (panel.machine_height + _MACHINE_GAP)
        if number < panel.shown:
            yield _machine(panel, x, y)
        else:
            yield _text(x + 2, y + panel.machine_height / 2 + 4, f"+ {panel.replicas - number}")


def _machine(panel: Panel, x: float, y: float) -> str:
    places = (divmod(n, _CELLS_A_ROW) for n in range(min(panel.accelerators, _MOST_CELLS)))
    cells = "".join(
        f"M{x + 2.5 + column * _CELL:g} {y + 2.5 + row * _CELL:g}h6v6h-6z" for row, column in places
    )
    body = f'width="{panel.machine_width:g}" height="{panel.machine_height:g}" rx="2"'
    return (
        f'<rect class="dn-machine" x="{x:g}" y="{y:g}" {body}/>'
        f'{cells and f"""<path class="dn-cells" d="{cells}"/>"""}'
    )

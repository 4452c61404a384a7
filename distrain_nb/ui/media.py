"""What a run writes besides scalars, below its charts: histograms, images, texts, hyperparameters.

The kernel sends what there is; the page asks for what the reader opens, in `static/media.js`.
"""

from __future__ import annotations

import html
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anywidget
import traitlets

from distrain_nb.run.facts import plural
from distrain_nb.run.media import index
from distrain_nb.server.doors import fingerprint
from distrain_nb.ui.widgets import STATIC, answers, module, plotly

if TYPE_CHECKING:
    from distrain_nb.ui.lines import Metrics

LOOK_EVERY_S = 1.0


class MediaWidget(anywidget.AnyWidget):
    """A folded list of each kind.

    `index` is that of `run.media`, `key` marks where the widget may stand in a document.
    """

    _esm = module("monitor/page", "monitor/ask", "monitor/places", "plot_frame", "media")
    _css = STATIC / "charts.css"

    run = traitlets.Int().tag(sync=True)
    home = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)
    plotly = traitlets.Unicode().tag(sync=True)
    index = traitlets.Dict().tag(sync=True)


class LiveMedia:
    """Shows what `metrics` has seen besides scalars, in a widget that exists from then on."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._seen = 0
        self._due = 0.0
        self.widget: Any = None

    def refresh(self) -> None:
        """Show what is new, once a second at most. Reads no files: the charts do."""
        now = time.monotonic()
        shelf = self._metrics.shelf
        if now < self._due or shelf.seen == self._seen:
            return
        self._due, self._seen = now + LOOK_EVERY_S, shelf.seen
        if self.widget is None:
            self.widget = _widget(self._metrics)
        self.widget.index = index(shelf)

    @property
    def mark(self) -> str:
        """Where it may stand in a document, as long as the page has the widget."""
        return f'<i hidden data-distrain-live="{self.widget.key}"></i>' if self.widget else ""


def _widget(metrics: Metrics) -> MediaWidget:
    folder = metrics.folder
    widget = MediaWidget(
        run=int(folder.name),
        home=fingerprint(folder.parents[1]),
        key=uuid4().hex,
        plotly=plotly().model_id,
    )
    answers(widget, folder)
    return widget


def still(metrics: Metrics) -> str:
    """What stays in a document: hyperparameters whole, of the rest what there is."""
    told = index(metrics.shelf)
    parts = [_hparams(told["hparams"])] if told["hparams"] else []
    kinds = [row["kind"] for row in told["rows"]]
    counts = [plural(kinds.count(kind), kind) for kind in dict.fromkeys(kinds)]
    if counts:
        parts.append(f"<div>{', '.join(counts)}: shown with a kernel, by %distrain attach</div>")
    parts += [f"<div>{html.escape(note)}</div>" for note in told["notes"]]
    return f'<div class="distrain">{"".join(parts)}</div>' if parts else ""


def _hparams(values: dict[str, dict[str, Any]]) -> str:
    names = dict.fromkeys(name for each in values.values() for name in each)
    heads = "".join(f'<th scope="col">{html.escape(run)}</th>' for run in values)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>'
        + "".join(f"<td>{html.escape(str(each.get(name, '')))}</td>" for each in values.values())
        + "</tr>"
        for name in names
    )
    return (
        '<details class="dn-folded"><summary>Hyperparameters</summary>'
        f'<table class="dn-table"><tr><th></th>{heads}</tr>{rows}</table></details>'
    )

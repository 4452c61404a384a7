"""Views for documents whose page takes styles and drawings away, besides scripts.

JupyterLab does so in a notebook that isn't trusted, and GitHub always: there the document's own
parts stay hidden, and these are shown, with pictures of the charts. Their few styles are attributes
that JupyterLab leaves; it also leaves `hidden`, but with a value only.
"""

from __future__ import annotations

import html
from base64 import b64encode
from typing import TYPE_CHECKING

from distrain_nb.run.charts import drawing, figure
from distrain_nb.run.summary import short_number
from distrain_nb.saved.markup import LITERAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from distrain_nb.run.charts.lines import ChartLine, Metrics
    from distrain_nb.run.metrics.events import Key

    _Words = tuple[str, str, str]  # the metric, its newest value, and a note

# Only beside styles that were left in: those of another output in the page say nothing of this one.
STYLE = (
    "style~.dn-unstyled,style~*>.dn-unstyled{display:none!important}"
    "style~.dn-styled[hidden],style~*>.dn-styled[hidden]{display:block!important}"
)
TRUST = (
    "Without styles and scripts, as this notebook isn't trusted. "
    "If it is yours: Command Palette (Ctrl+Shift+C), “Trust Notebook”."
)
_BOX = "border:1px solid #8888;border-radius:8px;padding:4px 12px;margin:2px 0 6px"
_LOG = "max-height:306px;overflow:auto;white-space:pre-wrap;font-size:12px;margin:4px 0"
_SMALL = "font-size:12px;opacity:0.8;margin:4px 0"
_POINTS = 60
_WIDTH, _MARGIN, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 400, 60, 24, 330, 120  # pixels
_INK = "fill:#808080;font:11px sans-serif"
_PICTURE_STYLE = (
    "path:not([fill]){fill:none}.dn-spread{fill-opacity:.2}path{stroke-width:1.5;vector-effect:non-scaling-stroke}"
    ".dn-rows{stroke:#8884}.dn-ground{stroke:#808080}"
    ".dn-dots{stroke-width:5;stroke-linecap:round}"
    f"text{{{_INK}}}"
)


def run(text: str) -> str:
    """Write a run by its text: the first line is its state, and the log's end is the last."""
    state, _, rest = text.partition("\n")
    return (
        f'<div class="dn-unstyled {LITERAL}" style="{_BOX}"><b>{html.escape(state)}</b>'
        f'<pre style="{_LOG}">{html.escape(rest)}</pre>'
        f'<p style="{_SMALL}">{TRUST}</p></div>'
    )


def placeholder(text: str) -> str:
    """Return the HTML of a widget that a page doesn't show, for a run that has only begun."""
    styled = f'<pre class="dn-styled" hidden="hidden">{html.escape(text)}</pre>'
    return f"<style>{STYLE}</style>{styled}{run(text)}"


def charts(metrics: Metrics) -> str:
    """Return a picture of each chart."""
    keys = figure.shown(metrics.keys, metrics.stacked)
    lines = {key: metrics.line(key, _POINTS) for key in keys}
    last, colours = metrics.last(), figure.colours_of(keys, metrics.family)
    notes = figure.words(lines)
    pictures = (
        _image(
            (tag, short_number(last[tag]), notes.get(tag, "")),
            {key: lines[key] for key in keys if key.tag == tag},
            colours,
        )
        for tag in figure.tags_of(keys)
        if tag in last
    )
    return f'<div class="dn-unstyled" style="{_BOX}">{"".join(pictures)}</div>'


def _image(words: _Words, lines: drawing.Lines, colours: Mapping[str, str]) -> str:
    packed = b64encode(_picture(words, lines, colours).encode()).decode()
    tag, newest, note = words
    text = ", ".join(filter(None, (f"{tag} by step", f"newest {newest}", note)))
    return (
        f'<img alt="{html.escape(text)}" width="{_WIDTH}"'
        f' style="max-width:100%" src="data:image/svg+xml;base64,{packed}">'
    )


def _picture(words: _Words, lines: Mapping[Key, ChartLine], colours: Mapping[str, str]) -> str:
    tag, newest, note = words
    plot = drawing.plot(lines, colours, _PLOT_HEIGHT)
    bottom = _TOP + _PLOT_HEIGHT
    texts = [
        _text(_MARGIN, _TOP - 10, "start", f"{tag} {newest}"),
        _text(_MARGIN + 8, _TOP + 18, "start", note),
    ]
    texts += [
        _text(_MARGIN - 6, _TOP + 4 + share * _PLOT_HEIGHT, "end", text)
        for share, text in plot.rows
    ]
    texts += [
        _text(_MARGIN + share * _PLOT_WIDTH, bottom + 16, "middle", text)
        for share, text in plot.columns
    ]
    side = drawing.SIDE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 24}">'
        f"<style>{_PICTURE_STYLE}</style>"
        f'<svg x="{_MARGIN}" y="{_TOP}" width="{_PLOT_WIDTH}" height="{_PLOT_HEIGHT}"'
        f' viewBox="0 0 {side} {side}" preserveAspectRatio="none" overflow="visible">'
        f"{plot.paths}</svg>{''.join(texts)}</svg>"
    )


def _text(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{html.escape(text)}</text>'

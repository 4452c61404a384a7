"""What the ranks of a run have shown (`worker/rank/displays.py`), made safe for a page.

Whoever wrote the files is not trusted. An image is one by its first bytes. A table is its cells'
text. A figure of plotly is numbers and words for our own plotly. HTML stands in a frame in which
nothing runs and nothing is fetched.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING

from distrain_nb.run.metrics.summary_values import FORMATS
from distrain_nb.types import Json, Value
from distrain_nb.worker.files.folder import DISPLAYS_FOLDER, EVENTS_FOLDER
from distrain_nb.worker.rank.displays import LARGEST_BYTES, MOST, PLOTLY

if TYPE_CHECKING:
    from distrain_nb.run.pages.protocol import Answer, DisplayRow
    from distrain_nb.run.pages.query import Query

_FILE = re.compile(r"([0-9]{1,15})-([0-9]{1,10})-([0-9]{1,7})-([0-9]{1,9})(-clears)?\.json")
_RANK = re.compile(r"rank-([0-9]{1,6})")
DRAWN = ("scatter", "bar", "pie")  # kinds of traces that the page's plotly has
MOST_CELLS, LONGEST_TEXT = 20_000, 20_000
_SAVED_BYTES = 1_000_000  # of all displays in a saved notebook
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
# As the live page has it (`page/src/displays.js`).
_PLAIN = "html{background:#fff}body{margin:8px;font:13px/1.5 system-ui,sans-serif;color:#1f2328}"
_FETCHED = ("images", "source", "href", "mapbox", "map", "geo")


@dataclass(frozen=True)
class Display:
    """What a rank has shown: `time` in seconds since the epoch, and its file."""

    rank: int
    time: float
    path: Path

    @property
    def name(self) -> str:
        """Its name among all of the run."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def data(self) -> Mapping[str, Json]:
        """What it is, by MIME type; images in base64. Nobody has checked it. Raises OSError,
        ValueError for a damaged file."""
        with self.path.open("rb") as file:
            text = file.read(LARGEST_BYTES + 1)
        content = json.loads(text) if len(text) <= LARGEST_BYTES else None
        if not isinstance(content, dict):
            raise ValueError(f"{self.path.name} is no display of {LARGEST_BYTES >> 20} MB at most")
        return content

    def _repr_html_(self) -> str:
        return "".join(_still(self))


def displays(run_folder: Path) -> list[Display]:
    """Return what is shown now, in order; of one that was replaced, the newest."""
    shown: list[Display] = []
    root = run_folder / EVENTS_FOLDER / DISPLAYS_FOLDER
    for folder in [] if root.is_symlink() else sorted(root.glob("rank-*")):
        rank = _RANK.fullmatch(folder.name)
        if rank is None or folder.is_symlink():
            continue
        newest: dict[tuple[int, int, int], tuple[int, bool, Path]] = {}
        for path in folder.iterdir():
            match = _FILE.fullmatch(path.name)
            if match and _is_whole(path, _size(path)):
                began, process, number, version = map(int, match.groups()[:4])
                entry = (version, bool(match[5]), path)
                key = (began, process, number)
                newest[key] = max(entry, newest.get(key, entry))
        ordered = sorted(newest.items())
        cleared = [key for key, (_, clears, _) in ordered if clears]
        shown += [
            Display(int(rank[1]), key[0] / 1000, path)
            for key, (_, _, path) in ordered
            if not cleared or key >= cleared[-1]
        ]
    return sorted(shown, key=lambda display: display.time)[-MOST:]


@lru_cache(maxsize=4 * MOST)
def _is_whole(path: Path, size: int) -> bool:
    """Return whether a file has come to its end: it may grow, as it is fetched."""
    if not size:
        return False
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"}"


def _size(path: Path) -> int:
    """Return the bytes of a file; 0 for a link, and for what is none."""
    try:
        status = path.lstat()
    except OSError:  # it has just been replaced
        return 0
    return status.st_size if S_ISREG(status.st_mode) else 0


def rows(run_folder: Path) -> list[DisplayRow]:
    """List the displays for a page."""
    return [
        {"name": shown.name, "rank": shown.rank, "time": shown.time}
        for shown in displays(run_folder)
    ]


def display(run_folder: Path, query: Query) -> Answer:
    """Return one display that a page can show, by the `name` under which it is listed."""
    listed = {shown.name: shown for shown in displays(run_folder)}
    shown = listed.get(query.get("name", ""))
    return safe(shown) if shown else {"note": "it is no longer shown"}


def safe(shown: Display) -> Answer:
    """Return what a page may show of a display: one of `image`, `table`, `figure`, `page` or
    `text`, or a `note` that says why not."""
    try:
        data = {form: content for form, content in shown.data.items() if content}
    except (OSError, ValueError, RecursionError) as error:
        return {"note": f"it can't be read: {error}"}
    text = str(data.get("text/plain", ""))[:LONGEST_TEXT]
    for form, make in _FORMS.items():
        if form in data:
            try:
                return {"label": text[:200], **make(data[form])}
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                return {"label": text[:200], "note": f"{form}: {error}"}
    return {"text": text} if text else {"note": f"nothing here shows {', '.join(data) or 'it'}"}


def _image(content: Value) -> Answer:
    try:
        start = base64.b64decode(str(content)[:16], validate=True)
        base64.b64decode(content, validate=False)
    except (binascii.Error, ValueError):
        start = b""
    form = next((form for head, form in FORMATS.items() if start.startswith(head)), None)
    if form is None:
        raise ValueError("it is neither PNG, JPEG nor GIF")
    return {"image": {"form": form, "data": re.sub(r"[^A-Za-z0-9+/=]", "", content)}}


def _figure(content: Value) -> Answer:
    data, layout = content["data"], content.get("layout") or {}
    kinds = [trace.get("type") or "scatter" for trace in data]
    others = sorted({str(kind) for kind in kinds} - {*DRAWN})
    if others:
        raise ValueError(
            f"a chart of {', '.join(others)} isn't drawn here, only {', '.join(DRAWN)}"
        )
    data = [{**_plain(trace), "type": kind} for trace, kind in zip(data, kinds, strict=True)]
    return {"figure": {"data": data, "layout": _plain(layout)}}


def _plain(content: Value) -> Value:
    """Return a part of a figure without what leads elsewhere: pictures and links."""
    if isinstance(content, dict):
        return {name: _plain(part) for name, part in content.items() if name not in _FETCHED}
    if isinstance(content, list):
        return [_plain(part) for part in content]
    return re.sub(r"<(?=/?a\b)", "‹", content, flags=re.I) if isinstance(content, str) else content


def _html(content: Value) -> Answer:
    page = _text(content)
    table = _Table()
    table.feed(page)
    table.close()
    if table.is_plain:
        return {"table": table.cut}
    if "<script" in page.lower() and not table.has_text:
        raise ValueError("it is made by scripts, which don't run here")
    return {"page": page}


def _markdown(content: Value) -> Answer:
    """Render it where Jupyter's own converter is installed, as beside every Jupyter server."""
    try:
        import mistune
    except ImportError:
        return {"text": _text(content)[:LONGEST_TEXT]}
    return {"page": str(mistune.html(_text(content)))}


def _text(content: Value) -> str:
    return "".join(map(str, content)) if isinstance(content, list) else str(content)


_FORMS: dict[str, Callable[[Value], Answer]] = {
    PLOTLY: _figure,
    "image/png": _image,
    "image/jpeg": _image,
    "image/gif": _image,
    "text/html": _html,
    "text/markdown": _markdown,
    "image/svg+xml": lambda content: {"page": _text(content)},
    "text/latex": lambda content: {"text": _text(content)[:LONGEST_TEXT]},
}


class _Table(HTMLParser):
    """A table of pandas or polars as rows of (text, whether it is a heading, columns, rows)."""

    _AROUND = frozenset(
        ["div", "p", "small", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "style", "br"]
    )

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[list[list[Value]]] = []
        self._around: list[str] = []
        self._in_cell = self._in_style = False
        self._tables = self._others = 0

    @property
    def is_plain(self) -> bool:
        return self._tables == 1 and not self._others

    @property
    def has_text(self) -> bool:
        return bool(self._rows or "".join(self._around).strip())

    @property
    def cut(self) -> Answer:
        """The rows, as many as a page shows, and what stands around the table."""
        rows, cells = [], 0
        for row in self._rows:
            cells += len(row)
            if cells > MOST_CELLS:
                break
            rows.append(
                [(text.strip()[:1_000], head, wide, high) for text, head, wide, high in row]
            )
        note = " ".join(" ".join(self._around).split())
        return {"rows": rows, "note": note[:200]}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attributes}
        self._others += tag not in self._AROUND
        if tag == "table":
            self._tables += 1
            self._others += "dataframe" not in named.get("class", "").split()
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th") and self._rows:
            span = [_span(named.get(name, "")) for name in ("colspan", "rowspan")]
            self._rows[-1].append(["", tag == "th", *span])
            self._in_cell = True
        self._in_style = tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_cell and self._rows and self._rows[-1]:
            self._rows[-1][-1][0] += data
        elif not self._in_style:
            self._around.append(data)


def _span(text: str) -> int:
    return min(1_000, max(1, int(text))) if text.isascii() and text.isdigit() else 1


# -- in a saved notebook --------------------------------------------------------------------------


def still(run_folder: Path, command: str) -> str:
    """Return the newest displays as HTML without scripts, as many as a notebook should keep."""
    parts: list[str] = []
    size, every = 0, displays(run_folder)
    for shown in reversed(every):
        part = "".join(_still(shown))
        if size + len(part) > _SAVED_BYTES:
            break
        size += len(part)
        parts.append(part)
    if len(parts) < len(every):
        note = f"the last {len(parts)} of {len(every):,} displays; all: {command}"
        parts.append(f'<div class="dn-chart-note">{html.escape(note)}</div>')
    return "".join(reversed(parts))


def _still(shown: Display) -> Iterator[str]:
    answer: Mapping[str, Value] = safe(shown)
    label = html.escape(answer.get("label") or f"shown by rank {shown.rank}")
    yield '<div class="dn-display">'
    if "image" in answer:
        image = answer["image"]
        source = f"data:{image['form']};base64,{image['data']}"
        yield f'<img alt="{label}" style="max-width:100%" src="{source}">'
    elif "table" in answer:
        yield _table_html(answer["table"])
    elif "page" in answer:
        page = html.escape(framed(answer["page"]))
        yield f'<iframe class="dn-page" title="{label}" sandbox="" srcdoc="{page}"></iframe>'
    elif "figure" in answer:
        yield f'<div class="dn-chart-note">{label}: run.displays has its data</div>'
    else:
        text = html.escape(answer.get("text") or answer["note"])
        yield f'<pre class="dn-media-text">{text}</pre>'
    yield "</div>"


def framed(page: str) -> str:
    """Return the document of a sandboxed frame: no script, and nothing from elsewhere."""
    head = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    return f"<!doctype html><html><head>{head}<style>{_PLAIN}</style></head><body>{page}</body>"


def _table_html(table: Mapping[str, Value]) -> str:
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table["rows"])
    note = f'<div class="dn-chart-note">{html.escape(table["note"])}</div>' if table["note"] else ""
    return f'<div class="dn-scrolled"><table class="dn-table">{rows}</table></div>{note}'


def _cell(cell: Sequence[Value]) -> str:
    text, head, wide, high = cell
    spans = f' colspan="{wide}"' * (wide > 1) + f' rowspan="{high}"' * (high > 1)
    tag = "th" if head and text else "td"
    return f"<{tag}{spans}>{html.escape(text)}</{tag}>"

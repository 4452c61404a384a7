"""What a rank shows besides text: figures, images, tables, HTML, by MIME type as in a notebook.

Each is a file of JSON beside the rank's event files, so that it travels from a cloud as these do.
Libraries are changed when the program imports them; none is imported for it.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from distrain_nb.worker.files.folder import DISPLAYS_FOLDER
from distrain_nb.worker.metrics.writer import FOLDER_VARIABLE

RANKS_VARIABLE, ALL = "DISTRAIN_DISPLAY", "all"  # whose displays are kept: rank 0's without it
LARGEST_BYTES, MOST_BYTES, MOST = 4 << 20, 64 << 20, 1_000  # of one display, and of a run's
PLOTLY = "application/vnd.plotly.v1+json"
_METHODS = {
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "image/svg+xml": "_repr_svg_",
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
}


class _KeptDisplay(NamedTuple):
    """A display that is there: when its place was taken, in ms, and its number in this process."""

    began: int
    number: int
    version: int
    path: Path
    size: int


class _Displays:
    """The displays of this process, by the name under which they are replaced."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.present: Dict[str, _KeptDisplay] = {}
        self.number = 0
        self.clears = False
        self.figures: weakref.WeakSet[Any] = weakref.WeakSet()  # of Matplotlib, that were shown

    def put(self, text: bytes, name: str) -> str:
        """Write a display in the place of what it replaces. Return why it was left out."""
        before = self.present.pop(name, None) if name else None
        stale = [*self.present.values()] if self.clears else []
        if self.clears:
            self.present = {}
        refused = self._refusal(len(text))
        if not refused:
            self._write(text, name, before)
            self.clears = False
        for old in (*stale, *((before,) if before else ())):
            try:
                os.unlink(str(old.path))
            except OSError:
                continue
        return refused

    def _refusal(self, size: int) -> str:
        every = os.environ.get(RANKS_VARIABLE) == ALL
        ranks = int(os.environ.get("WORLD_SIZE") or 1) if every else 1
        if len(self.present) >= MOST:
            return f"no more displays are kept: a rank may have {MOST:,}"
        if sum(display.size for display in self.present.values()) + size > MOST_BYTES // ranks:
            return f"no more displays are kept: a run may have {MOST_BYTES >> 20} MB"
        return ""

    def _write(self, text: bytes, name: str, before: Optional[_KeptDisplay]) -> None:
        self.number += 1
        began, number, version = int(time.time() * 1000), self.number, 0
        if before and not self.clears:
            began, number, version = before.began, before.number, before.version + 1
        folder = Path(os.environ[FOLDER_VARIABLE], DISPLAYS_FOLDER, "rank-" + os.environ["RANK"])
        clears = "-clears" if self.clears else ""
        path = folder / f"{began}-{os.getpid()}-{number}-{version}{clears}.json"
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_bytes(text)
        os.replace(str(draft), str(path))
        self.present[name or f"\0{number}"] = _KeptDisplay(began, number, version, path, len(text))


_displays = _Displays()


def forget() -> None:
    """Begin anew: in a forked process, and in a rank that stays when it begins another run."""
    global _displays
    _displays = _Displays()


os.register_at_fork(after_in_child=forget)


def are_kept() -> bool:
    """Return whether what this rank shows reaches the page."""
    rank = os.environ.get("RANK")
    is_shown = rank == "0" or (rank is not None and os.environ.get(RANKS_VARIABLE) == ALL)
    return is_shown and bool(os.environ.get(FOLDER_VARIABLE))


def publish(value: Any, raw: bool = False, name: str = "") -> str:
    """Keep what a notebook would draw of a value; with `raw`, of a MIME bundle.

    What is only text is in the log. The next display of a `name` takes its place. Returns a
    sentence where something is left out.
    """
    if not are_kept():
        return ""
    bundle = dict(value) if raw else bundle_of(value)
    if not bundle.keys() - {"text/plain"}:
        return ""
    if _is_figure(value):
        _displays.figures.add(value)
    text, left_out = _written(bundle), ""
    while len(text) > LARGEST_BYTES:
        largest = max(bundle, key=lambda form: len(_written({form: bundle[form]})))
        size = f"{len(text) / 1e6:.1f} MB"
        left_out = (
            f"a display's {largest} of {size} is left out: {LARGEST_BYTES >> 20} MB are allowed"
        )
        del bundle[largest]
        if not bundle.keys() - {"text/plain"}:
            return left_out
        text = _written(bundle)
    with _displays.lock:
        try:
            return _displays.put(text, name) or left_out
        except OSError as error:
            return f"a display can't be kept: {error}"


def clear() -> None:
    """Take away what was shown, as soon as something else is."""
    _displays.clears = bool(_displays.present)


def bundle_of(value: Any) -> Dict[str, Any]:
    """Return what a notebook would draw of a value, by MIME type; images in base64."""
    if _is_figure(value):
        picture = _png(value)
        return {"image/png": picture} if picture else {}
    several = _asked(value, "_repr_mimebundle_")
    bundle: Dict[str, Any] = dict(several) if isinstance(several, Mapping) else {}
    for form, method in _METHODS.items():
        content = bundle.get(form) or _asked(value, method)
        if content and isinstance(content, (str, bytes)):  # others answer to any name
            bundle[form] = _base64(content) if isinstance(content, bytes) else content
    return bundle


def _asked(value: Any, method: str) -> Any:
    """Return what a method gives, without metadata; None where there is none, or it fails."""
    if isinstance(value, type):
        return None
    try:
        content = getattr(value, method)()
    except Exception:
        return None
    return content[0] if isinstance(content, tuple) and content else content


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _written(bundle: Mapping[str, Any]) -> bytes:
    return json.dumps(bundle, default=repr).encode("utf-8", "replace")


# -- libraries that draw --------------------------------------------------------------------------


def use_no_screen() -> None:
    """Have Matplotlib draw into memory: a rank has no screen, and no notebook."""
    named = os.environ.get("MPLBACKEND", "")
    if not named or named.startswith("module://"):
        os.environ["MPLBACKEND"] = "agg"


def _is_figure(value: Any) -> bool:
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def _png(figure: Any) -> str:
    picture = io.BytesIO()
    try:
        figure.savefig(picture, format="png", bbox_inches="tight")
    except Exception as error:  # the program goes on, as in a notebook
        print(f"a figure can't be drawn: {error!r}", file=sys.stderr)
    return _base64(picture.getvalue())


def take_figures(every: bool) -> List[Any]:
    """Return the open figures of pyplot, `every` one or those not shown yet, and close all."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return []
    figures = [manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers()]
    helpers.Gcf.destroy_all()
    return [figure for figure in figures if every or figure not in _displays.figures]


def change_plotly(module: Any, show: Any) -> None:
    """Have plotly `show` a figure as data, unless the user has chosen how it is drawn."""

    class Renderer(module.ExternalRenderer):  # type: ignore[misc]
        def render(self, figure: Any) -> None:
            io_of_plotly = sys.modules["plotly.io"]
            drawing = json.loads(io_of_plotly.to_json(figure, validate=False))
            show({PLOTLY: drawing, "text/plain": "<Figure of plotly>"}, raw=True)

    if not os.environ.get("PLOTLY_RENDERER"):
        module.renderers["distrain"] = Renderer()
        module.renderers.default = "distrain"

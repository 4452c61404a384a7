"""What a cell shows: as text what a notebook would draw, on the first rank alone; `displays` keeps
the drawing."""

from __future__ import annotations

import builtins
import os
import re
import sys
from html.parser import HTMLParser
from typing import Any, Dict, List, Tuple

from distrain_nb.worker.rank import displays, questions
from distrain_nb.worker.rank.on_import import Change, on_import

_SAYS_NOTHING = re.compile(r"<[\w.<>]+ object( at 0x[0-9a-fA-F]+)?>")
_notes: List[str] = []  # sentences that have been said, once a process


def is_first() -> bool:
    """Return whether this process speaks for all."""
    rank = os.environ.get("RANK")
    return rank == "0" or (rank is None and "CLUSTER_SPEC" not in os.environ)


def show(value: object) -> None:
    """Show a value as a notebook shows that of a last line."""
    if value is not None:
        _display(value, raw=False)


def text_of(value: object) -> str:
    """Return an object's text as a notebook shows it. A rich form is used if there is no other."""
    text = repr(value)
    if _SAYS_NOTHING.fullmatch(text):
        return _markdown(value) or _without_tags(_rich(value, "_repr_html_")) or text
    return text


def _markdown(value: object) -> str:
    return _rich(value, "_repr_markdown_") or _rich(value, "_repr_latex_")


def _rich(value: object, form: str) -> str:
    try:
        form_and_metadata = getattr(value, form)()
    except Exception:
        return ""
    text = (
        form_and_metadata[0]
        if isinstance(form_and_metadata, tuple) and form_and_metadata
        else form_and_metadata
    )  # (text, metadata)
    return text if isinstance(text, str) else ""


def _without_tags(page: str) -> str:
    reader = _Text()
    reader.feed(page)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).splitlines())
    return "\n".join(filter(None, lines))


class _Text(HTMLParser):
    _LINES = frozenset(
        ["br", "div", "h1", "h2", "h3", "h4", "li", "ol", "p", "pre", "table", "tr", "ul"]
    )
    _CELLS = frozenset(["td", "th"])
    _UNSEEN = frozenset(["script", "style"])

    def __init__(self) -> None:
        super().__init__()
        self.parts: List[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, _: List[Tuple[str, Any]]) -> None:
        self._hidden += tag in self._UNSEEN
        self._space(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self._UNSEEN
        self._space(tag)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(" ".join(data.split("\n")))

    def _space(self, tag: str) -> None:
        if tag in self._LINES or tag in self._CELLS:
            self.parts.append("\n" if tag in self._LINES else " ")


# -- libraries that draw --------------------------------------------------------------------------


def display(
    *objects: Any, raw: bool = False, display_id: Any = None, clear: bool = False, **_: Any
) -> Any:
    """Show an object as IPython's `display`, which notebooks have without an import."""
    if clear:
        displays.clear()
    handle = Handle(None if display_id is True else display_id) if display_id else None
    for entry in objects:
        _display(entry, raw, handle.display_id if handle else "")
    return handle


class Handle:
    """What `display(…, display_id=True)` returns: IPython's, which may not be installed here."""

    def __init__(self, display_id: Any = None) -> None:
        self.display_id = str(display_id or f"display-{id(self)}")

    def display(self, entry: Any, **options: Any) -> None:
        display(entry, display_id=self.display_id, **options)

    update = display


def _display(value: Any, raw: bool, name: str = "") -> None:
    if not (is_first() or displays.are_kept()):
        return
    if not raw and not isinstance(value, type) and hasattr(value, "_ipython_display_"):
        value._ipython_display_()
        return
    left_out = displays.publish(value, raw, name)
    if left_out:
        tell(left_out)
    text = value.get("text/plain", "") if raw else text_of(value)
    if text and is_first():
        print(text)


def _show_figure(manager: Any) -> None:
    _display(manager.canvas.figure, raw=False)


def show_open_figures(every: bool = False) -> None:
    """Show `every` open figure of pyplot and close it; as the end of a notebook's cell does, by
    default those that were not shown yet."""
    for figure in displays.take_figures(every):
        _display(figure, raw=False)


def _change_ipython(module: Any) -> None:
    module.display = display
    for name, change in (
        ("clear_output", lambda *_, **__: displays.clear()),
        ("publish_display_data", lambda data, *_, **__: display(data, raw=True)),
    ):
        if hasattr(module, name):
            setattr(module, name, change)


def _change_matplotlib(module: Any) -> None:
    """Have figures shown on the page, where Matplotlib would open a window."""
    module.FigureManagerBase.show = _show_figure


def _change_pyplot(module: Any) -> None:
    module.show = lambda *_, **__: show_open_figures(every=True)


def tell(sentence: str) -> None:
    """Say a sentence once, in the first rank."""
    if is_first() and sentence not in _notes:
        _notes.append(sentence)
        print(sentence, file=sys.stderr)


def _change_tqdm(module: Any) -> None:
    """Replace tqdm's notebook bar by the text bar, made to accept the same arguments."""
    text_bar = module.std_tqdm

    class tqdm_notebook(text_bar):  # type: ignore[misc, valid-type]  # noqa: N801
        def __init__(self, *arguments: Any, **options: Any) -> None:
            options.pop("display", None)
            super().__init__(*arguments, **options)

    module.tqdm_notebook = module.tqdm = tqdm_notebook


CHANGES: Dict[str, Change] = {
    "IPython.core.display": _change_ipython,
    "IPython.core.display_functions": _change_ipython,
    "IPython.display": _change_ipython,
    "matplotlib.backend_bases": _change_matplotlib,
    "matplotlib.pyplot": _change_pyplot,
    "plotly.io._renderers": lambda module: displays.change_plotly(module, display),
    "tqdm.notebook": _change_tqdm,
}


def begin() -> None:
    """Show values in rank 0 alone, and ask questions at the notebook."""
    displays.use_no_screen()
    sys.displayhook = show
    builtins.display = display  # type: ignore[attr-defined]  # as in a notebook
    on_import({**CHANGES, **questions.begin()})

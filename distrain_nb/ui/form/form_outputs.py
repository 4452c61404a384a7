"""The outputs of a form: a widget while a page shows it, and what a saved notebook keeps of it."""

from __future__ import annotations

import html

from distrain_nb.saved.markup import LITERAL, OWN_KEYS
from distrain_nb.ui import outputs
from distrain_nb.ui.form.widget import FormWidget
from distrain_nb.ui.frontend import Frontend, frontend

_BOX = "border:1px solid #8888;border-radius:8px;padding:4px 12px;margin:2px 0 6px"
_SMALL = "font-size:12px;opacity:0.8;margin:4px 0"
_CODE = "white-space:pre-wrap;font-size:12px;margin:4px 0"
AGAIN = "This form works while its kernel runs. To continue from here, run:"


class FormOutputs:
    """Shows a form, and keeps the document of each of its outputs as the form is.

    A page gets the widget first. Once Jupyter's page says that it shows it, the document takes its
    place and marks where the live form goes on: a notebook that is saved then opens with the
    document, where a widget's view would say only that its model wasn't found.
    """

    def __init__(self, widget: FormWidget) -> None:
        self._widget = widget
        self._shown: list[outputs.CellOutput] = []
        self._kept = ""

    def show(self, text: str) -> None:
        """Display the form, which is `text` where nothing else can be shown."""
        first = outputs.show(self._first(text))
        if frontend() is Frontend.PAGE:
            self._shown.append(first)
        if self._kept:
            self._kept = ""
            self.keep(text)

    def changed(self, text: str) -> None:
        """Bring documents up to date that stand in a page already."""
        if self._kept:
            self.keep(text)

    def keep(self, text: str) -> None:
        """Put the form as it is now into its outputs, as a document."""
        page = self._document(live=True)
        if page == self._kept:
            return
        self._kept = page
        bundle = {"text/html": page, "text/plain": text}
        outputs.replace_all(*((output, bundle) for output in self._shown))

    def _first(self, text: str) -> outputs.Bundle:
        shown_by = frontend()
        bundle: outputs.Bundle = {
            "text/html": self._document(live=shown_by is Frontend.SERVER),
            "text/plain": text,
        }
        if shown_by is Frontend.PAGE:
            view = {"version_major": 2, "version_minor": 0, "model_id": self._widget.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = view
        return bundle

    def _document(self, *, live: bool) -> str:
        view = self._widget.view
        mark = f'<i hidden data-distrain-live="{self._widget.key}"></i>' if live else ""
        place = dict(view["places"])[view["on"]]
        return (
            f'{mark}<div class="distrain {LITERAL}" {OWN_KEYS} style="{_BOX}">'
            f"<b>Job layout: {html.escape(place)}</b>"
            f'<div style="{_SMALL}">{html.escape(view["verdict"])}</div>'
            f'<pre style="{_CODE}">{html.escape(view["cell"])}</pre>'
            f'<p style="{_SMALL}">{AGAIN}</p>'
            f'<pre style="{_CODE}">{html.escape(view["again"])}</pre></div>'
        )

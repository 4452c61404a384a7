"""The widget that shows the job builder."""

from __future__ import annotations

import anywidget
import traitlets

from distrain_nb.ui.widgets import STATIC


class FormWidget(anywidget.AnyWidget):
    """The form's widget, drawn by `page/src/form/`. It sends what the user does; see `Form`."""

    _esm = STATIC / "form.js"
    _css = STATIC / "form.css"

    view = traitlets.Dict().tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
    files = traitlets.Dict().tag(sync=True)
    heard = traitlets.List().tag(sync=True)
    key = traitlets.Unicode("").tag(sync=True)
    tab = traitlets.Unicode("options").tag(sync=True)

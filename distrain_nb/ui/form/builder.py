"""The job builder: a form whose state lives in the kernel, so that a reload loses nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import traitlets

from distrain_nb.api.settings import setting_hints
from distrain_nb.backends.options import declared
from distrain_nb.backends.plugins import all_backends
from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout, Role
from distrain_nb.layout.case import TYPICAL_STEP_S
from distrain_nb.layout.files import FOLDER
from distrain_nb.layout.formats import Imported, exports, left_out, read_any
from distrain_nb.layout.place import moved
from distrain_nb.layout.words import heading
from distrain_nb.tuning.formats import has_study, read_study
from distrain_nb.tuning.options import from_line
from distrain_nb.ui.form.cost import FormCosts
from distrain_nb.ui.form.editing import Editing, History
from distrain_nb.ui.form.fields import bytes_of, seconds_of
from distrain_nb.ui.form.form_outputs import FormOutputs
from distrain_nb.ui.form.own import from_line as own_from_line
from distrain_nb.ui.form.own import from_request, own_words, with_own
from distrain_nb.ui.form.page_order import PageOrder
from distrain_nb.ui.form.saving import SavedLayouts
from distrain_nb.ui.form.tuning import Tuning, offered
from distrain_nb.ui.form.view import not_in_form, options, view
from distrain_nb.ui.form.widget import ACTIONS, FormWidget

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from distrain_nb.findings import Finding
    from distrain_nb.tuning.spec import StudySpec

LINES = ("%%distrain", "-")  # how options of a cell begin


class Form(traitlets.HasTraits):  # type: ignore[misc]
    """A layout and everything that can be done to it, from the page and from Python alike.

    `layout` can be read, set and observed; `gradient_bytes` is what the traffic is reckoned for,
    with steps of `step_s` seconds. Saved layouts are in `folder`, as seen from the kernel's.
    """

    layout = traitlets.Instance(Layout)
    gradient_bytes = traitlets.Int(400_000_000, min=1)
    step_s = traitlets.Float(TYPICAL_STEP_S, min=1e-6)

    def __init__(self, layout: Layout | str | None = None, folder: Path | str = FOLDER) -> None:
        is_line = isinstance(layout, str) and layout.lstrip().startswith(LINES)
        self._saved = SavedLayouts(None if is_line else layout, folder)
        self._script: tuple[str, ...] = ()
        self._hints: dict[str, Mapping[str, str]] = {}
        self._is_heard = self._is_priced = False
        self._costs = FormCosts(self._price_came)
        start = self._saved.first
        self._history = History(Editing(start))
        key = uuid4().hex
        self.widget = FormWidget(
            model_id=key,
            view=self._view(),
            options=options(start),
            files=self._saved.files("", "good"),
            key=key,
        )
        self._outputs = FormOutputs(self.widget)
        self._order = PageOrder(self._heard)
        self.widget.on_msg(self._received)
        super().__init__(layout=start)
        self.observe(self._set, "layout")
        self.observe(lambda _: self._show(), ["gradient_bytes", "step_s"])
        if is_line:
            self.paste(str(layout))
            self._tell("")
        if self._is_priced:
            self._price_came()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that is wrong with what stands in the fields."""
        return self._history.now.findings()

    @property
    def exports(self) -> dict[str, str]:
        """The layout in every form that it can be copied in, by the form's name."""
        return exports(self.layout)

    @property
    def line(self) -> str:
        """The head of a cell that runs on this layout, or on its like where its place takes no
        jobs any more; by its name where it is saved as it is. The line that runs a script, where
        one was pasted."""
        return heading(self._words(), self._script)

    @property
    def rehearsal(self) -> str:
        """The head of a cell that rehearses the same here; empty where nothing can."""
        on = moved(self._history.now.layout).on
        able = (
            backend.name for backend in all_backends() if "rehearse" in declared(backend.options)
        )
        return heading([*self._words(), "--rehearse"], self._script) if on in able else ""

    def set(self, path: str, text: str, group: str = "") -> None:
        """Type a text into a field, such as `workers.machine`, whether or not it can be read."""
        self._do(self._history.then(self._history.now.typed(path, text), group))

    def choose(self, path: str, text: str) -> None:
        """Take an entry of a field's list: a machine comes with its own GPUs."""
        self._do(self._history.then(self._history.now.chosen(path, text)))

    def add(self, role: Role | str) -> None:
        """Add a pool of a role."""
        self._do(self._history.then(self._history.now.added(Role(role))))

    def remove(self, role: Role | str) -> None:
        """Remove the pool of a role."""
        self._do(self._history.then(self._history.now.removed(Role(role))))

    def tune(self) -> None:
        """Add a parameter for a study to vary; its fields are `tuning.N.name`, from 0."""
        self._tuned(self._history.now.tuning.added())

    def untune(self, number: int) -> None:
        """Remove a study's parameter, by its number from 0."""
        self._tuned(self._history.now.tuning.removed(number))

    def begin_with(self) -> None:
        """Add a trial for a study to begin with; its field is `tuning.initial.N`, from 0."""
        self._tuned(self._history.now.tuning.with_initial())

    def not_begin_with(self, number: int) -> None:
        """Remove a trial that a study was to begin with, by its number from 0."""
        self._tuned(self._history.now.tuning.without_initial(number))

    def _tuned(self, tuning: Tuning) -> None:
        self._do(self._history.then(replace(self._history.now, tuning=tuning)))

    def size_reducers(self) -> None:
        """Size the Reduction Server for the workers. Raises OptionError if none can cover them."""
        self._do(self._history.then(self._history.now.sized()))

    def repair(self, code: str, where: str, label: str = "") -> None:
        """Apply a repair of a finding: the one with that label, or the smallest.

        Raises OptionError if there is no such finding or repair any more.
        """
        for finding in self.findings:
            for fix in finding.fixes:
                if (finding.code, finding.where) == (code, where) and label in ("", fix.label):
                    self._do(self._history.repair(finding, fix))
                    return
        raise OptionError(f"no finding to repair: {label or code!r} at {where or 'all'}")

    def set_gradient(self, text: str) -> None:
        """Set the size of a gradient, such as `400 MB`. Raises OptionError if it can't be read."""
        self.gradient_bytes = bytes_of(text)

    def set_step(self, text: str) -> None:
        """Set the time of a step without communication: `250 ms`. Raises OptionError likewise."""
        self.step_s = seconds_of(text)

    def compare_regions(self) -> None:
        """Show what the layout costs in every region."""
        self._costs.by_region = True
        self._show()

    def undo(self) -> None:
        """Go a step back."""
        self._do(self._history.undone())

    def redo(self) -> None:
        """Do the last undone step again."""
        self._do(self._history.redone())

    def save(self, name: str) -> Path:
        """Write the layout to `FOLDER/NAME.yaml`, for `--layout NAME`. Raises OptionError."""
        path = self._saved.save(self.layout, name)
        self._show()
        self._tell(f"Saved in {path}; use it as --layout {self._saved.option(name)}")
        return path

    def ask_to_save(self, name: str) -> None:
        """Save, but ask once before another layout's file is replaced."""
        name = name.strip()
        if self._saved.is_to_ask(name):
            self._tell(f"There is a layout {name} already. Save again to replace it.", "bad")
            return
        self.save(name)

    def load(self, name: str) -> None:
        """Go on with a saved layout. Raises OptionError naming those that there are."""
        self._do(self._history.then(self._with(self._saved.load(name))))
        self._tell(f"Loaded {name}")

    def paste(self, text: str) -> tuple[Finding, ...]:
        """Go on with a layout in any of the clouds' forms, or with a cell's line, which may say a
        study too; gives what of it had no place.

        Raises OptionError naming what can't be read.
        """
        imported, study, fields = self._pasted(text)
        imported, more = from_request(imported)
        fields = {**fields, **more}
        self._script = imported.script
        tuning = self._history.now.tuning if study is None else Tuning.of(study)
        self._do(self._history.then(Editing(imported.layout, tuning=tuning, backend_texts=fields)))
        lost = left_out(imported)
        gone = f"; not part of a layout: {', '.join(f.where for f in lost)}" if lost else ""
        self._tell(f"Read as {imported.form}{gone}")
        return lost

    def _pasted(self, text: str) -> tuple[Imported, StudySpec | None, Mapping[str, str]]:
        """Return the layout, study and backend's own texts of a text. Where it has a study alone,
        the rest stays."""
        now = self._history.now
        if text.lstrip().startswith(LINES):
            rest, fields = own_from_line(text)
            rest, study = from_line(rest)
            return read_any(rest), study, fields
        try:
            imported = read_study(text) if has_study(text) else None
        except OptionError:  # then machines at least, or what keeps these from being read
            imported = None
        if imported is None:
            return read_any(text), None, now.backend_texts
        layout = now.layout if imported.layout is None else imported.layout
        script = self._script if imported.layout is None else imported.script
        return (
            Imported(imported.form, layout, imported.left_out, script),
            imported.spec,
            now.backend_texts,
        )

    def close(self) -> None:
        """Take the form off the page."""
        self.widget.close()

    def _ipython_display_(self) -> None:
        self._outputs.show(repr(self))

    def __repr__(self) -> str:
        return f"Form({str(self.layout)!r})"

    def _with(self, layout: Layout) -> Editing:
        """Return the form with another layout and everything else as it is."""
        now = self._history.now
        return Editing(layout, tuning=now.tuning, backend_texts=now.backend_texts)

    def _do(self, history: History) -> None:
        with self.widget.hold_sync():
            self._history = history
            self._saved.forget()
            if self.widget.files["note"]:
                self._tell("")
            if self.layout == history.now.layout:
                self._show()
            else:
                self.layout = history.now.layout

    def _set(self, change: Mapping[str, Any]) -> None:
        if change["new"] != self._history.now.layout:
            self._history = self._history.then(self._with(change["new"]))
        self._show()

    def _show(self) -> None:
        with self.widget.hold_sync():
            self.widget.view = self._view()
            self.widget.options = self._options()
        if not self._is_heard:  # what the page does is kept when it leaves the form
            self._outputs.changed(repr(self))

    def _options(self) -> dict[str, Any]:
        now = self._history.now
        return {**options(now.layout), **offered(now.tuning)}

    def _view(self) -> dict[str, Any]:
        hints = self._hints_of(self._history.now.layout.on)
        shown = view(self._history, self.gradient_bytes, self.step_s, hints, self._costs)
        self._costs.ask()
        return {
            **shown,
            "exports": [self._with_study(*export) for export in shown["exports"]],
            "cell": self.line,
            "again": f"import distrain_nb; distrain_nb.form({' '.join(self._words())!r})",
            "rehearsal": self.rehearsal,
        }

    def _with_study(self, name: str, title: str, text: str, lost: str) -> list[str]:
        """Return a form of the layout; the magic's own has all else too."""
        now = self._history.now
        if name == "options" and (now.tuning.rows or own_words(now.layout.on, now.backend_texts)):
            return [name, title, f"{self.line}\n", lost]
        text, more = with_own(name, now.layout.on, text, now.backend_texts)
        return [name, title, text, not_in_form(more, lost)]

    def _hints_of(self, place: str) -> Mapping[str, str]:
        """Return this machine's values for empty fields, with where they come from; found once."""
        if place not in self._hints:
            self._hints[place] = setting_hints(place)
        return self._hints[place]

    def _price_came(self) -> None:
        """Show the prices that are known now; called from another thread."""
        self._is_priced = True
        if "widget" in self.__dict__:
            with self.widget.hold_sync():
                self.widget.view = self._view()

    def _tell(self, note: str, tone: str = "good") -> None:
        with self.widget.hold_sync():
            self.widget.files = self._saved.files(note, tone)

    def _words(self) -> list[str]:
        """Return the options of a cell."""
        now = self._history.now
        fields = own_words(now.layout.on, now.backend_texts)
        return [*self._saved.words(now.layout), *fields, *now.tuning.words()]

    def _received(self, _: Any, message: Mapping[str, Any], __: Any) -> None:
        if message["do"] == "keep":
            self._outputs.keep(repr(self))
        elif not self._order.put(message):
            page = message["page"]
            with self.widget.hold_sync():
                self.widget.heard = [page, self._order.last(page)]
                self.widget.send_state()  # the page has not got all of it

    def _heard(self, message: Mapping[str, Any]) -> None:
        self._is_heard = True
        with self.widget.hold_sync():
            try:
                ACTIONS[message["do"]](self, message)
            except OptionError as error:
                self._tell(str(error), "bad")
            except Exception as error:
                self._tell(f"that failed: {type(error).__name__}: {error}", "bad")
                raise
            finally:  # the page waits for it
                self._is_heard = False
                self.widget.heard = [message["page"], message["number"]]


def form(layout: Layout | str | None = None) -> Form:
    """Open the job builder with a layout, a saved one's name, options of a cell, or this machine.

    Raises OptionError if there is no saved layout of that name, or for options it can't read.
    """
    return Form(layout)

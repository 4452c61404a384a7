"""The layouts that a form can save and load, and which of them it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distrain_nb.layout import Layout, load, save, saved
from distrain_nb.layout.files import FOLDER
from distrain_nb.layout.place import moved
from distrain_nb.layout.text import printed
from distrain_nb.layout.words import quoted


class SavedLayouts:
    """The saved layouts of a folder, as seen from the kernel's; `first` is the form's first layout,
    or the name or file of one. Raises OptionError if there is none of that name."""

    def __init__(self, first: Layout | str | None, folder: Path | str = FOLDER) -> None:
        self._folder = folder
        self._replacing = ""
        is_named = isinstance(first, str)
        self.first = load(first, folder) if isinstance(first, str) else first or Layout()
        self._name = Path(str(first)).stem if is_named else ""
        self._shown = (str(first), self.first) if is_named else None

    def option(self, name: str) -> str:
        """Return the value of `--layout` for a layout that is saved here."""
        return name if str(self._folder) == FOLDER else str(Path(self._folder, f"{name}.yaml"))

    def words(self, layout: Layout) -> list[str]:
        """Return the options of a cell: the name of what is saved, as long as it is as it was."""
        if self._shown and self._shown[1] == layout == moved(layout):
            return [f"--layout {quoted(self._shown[0])}"]
        return [*printed(moved(layout))]

    def save(self, layout: Layout, name: str) -> Path:
        """Write it; gives the file. Raises OptionError."""
        path = save(layout, name, self._folder)
        self._show(name, layout)
        return path

    def load(self, name: str) -> Layout:
        """Raise OptionError naming those that there are."""
        layout = load(name, self._folder)
        self._show(name, layout)
        return layout

    def is_to_ask(self, name: str) -> bool:
        """Return whether another layout's file would be replaced, which is asked once."""
        asks = name in saved(self._folder) and name not in (self._name, self._replacing)
        self._replacing = name if asks else ""
        return asks

    def forget(self) -> None:
        """Forget which layout was to be replaced: the form has changed since."""
        self._replacing = ""

    def files(self, note: str, tone: str) -> dict[str, Any]:
        """Return the saved layouts as the page shows them, with a note."""
        names = list(saved(self._folder))
        return {"name": self._name, "saved": names, "note": note, "tone": tone}

    def _show(self, name: str, layout: Layout) -> None:
        self._name, self._shown = name, (self.option(name), layout)

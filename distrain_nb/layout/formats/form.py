"""The forms that layouts are written in and read from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool
from distrain_nb.layout.reduction_server import reduction_image
from distrain_nb.layout.text import texts

if TYPE_CHECKING:
    from distrain_nb.layout.formats.imported import Imported
    from distrain_nb.layout.formats.python_names import Call
    from distrain_nb.layout.formats.python_source import PythonSource

_PARTS = ("machine", "accelerator", "disk_type", "disk_gb", "topology", "image", "alternatives")


@dataclass(frozen=True)
class Export:
    """A form that a layout can be copied in; `named` writes it with the name of a job.

    `data` is what the text writes out, where that is quicker to compare: YAML takes long to write.
    """

    name: str
    title: str
    text: Callable[[Layout], str]
    named: Callable[[Layout, str], str] | None = None
    data: Callable[[Layout], object] | None = None

    def left_out(self, layout: Layout) -> tuple[str, ...]:
        """Return the fields of a layout that this form has no place for, such as
        `workers.topology`.

        Those are the ones without which the text would be the same.
        """
        compared = self.data or self.text
        content = compared(layout)
        return tuple(path for path, without in _without(layout) if compared(without) == content)


@dataclass(frozen=True)
class CommandForm:
    """Read a command of a shell, recognized by its `verb`, such as `custom-jobs create`.

    `read` takes the words of the command, and the content of its file, None without one. `files`
    has the flags that name such a file.
    """

    title: str
    command: str
    verb: re.Pattern[str]
    read: Callable[[Sequence[str], object], Imported]
    files: tuple[str, ...] = ("--config",)


@dataclass(frozen=True)
class TextForm:
    """Read a text that `pattern` recognizes, such as a script."""

    title: str
    pattern: re.Pattern[str]
    read: Callable[[str], Imported]


@dataclass(frozen=True)
class MappingForm:
    """Read JSON or YAML that `matches`."""

    title: str
    matches: Callable[[object], bool]
    read: Callable[[object], Imported]


@dataclass(frozen=True)
class PythonForm:
    """Read the calls of an SDK in Python.

    `pattern` recognizes a text; `wants` tells the calls that a layout is read from; `positions` has
    the names of the arguments that notebooks give without, by function. `read` returns None if
    there is no such call; `lacking` says what there isn't then, and `paste` what to paste.
    """

    title: str
    pattern: re.Pattern[str]
    wants: Callable[[Call], bool]
    positions: Mapping[str, tuple[str, ...]]
    read: Callable[[PythonSource], Imported | None]
    lacking: str
    paste: str = ""


ReadForm = TextForm | CommandForm | MappingForm | PythonForm


def as_json(value: object) -> str:
    """Return a value as exports write it."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _without(layout: Layout) -> Iterator[tuple[str, Layout]]:
    """Yield the layout without each of the things that were chosen, by their paths."""
    for name in texts(layout):
        pool = getattr(layout, name)
        if isinstance(pool, Pool):
            yield name, layout.edited({name: None})
            for part in _PARTS:
                if getattr(pool, part) != getattr(Pool, part):
                    yield f"{name}.{part}", layout.edited({f"{name}.{part}": getattr(Pool, part)})
        elif name == "framework" and layout.framework_version:
            yield name, layout.edited({name: layout.framework_name})
        elif name == "region" and layout.reducers:
            # Their image is the nearest to the region, which is not to say the region.
            image = layout.reducers.image or reduction_image(current(), layout.region)
            yield name, layout.edited({name: None, "reducers.image": image})
        elif name != "on" and (name, pool) != ("scheduling", "STANDARD"):
            yield name, layout.edited({name: getattr(Layout, name)})

"""The notebook's definitions that the program doesn't name, for those who find them by text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from distrain_nb.findings import Severity
from distrain_nb.observed.definitions import is_definition
from distrain_nb.program.gathering.arrange import arrange
from distrain_nb.program.gathering.resolve import Import
from distrain_nb.program.program import Data
from distrain_nb.program.values.pickling import NotebookWriter, Seen
from distrain_nb.secrets.forms import secrets_by_context
from distrain_nb.secrets.prefixes import prefixed
from distrain_nb.worker.rank.caches import CACHE
from distrain_nb.worker.rank.later import Later, LaterStep
from distrain_nb.worker.rank.values import write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from distrain_nb.program.gathering.gather import Gathering
    from distrain_nb.program.gathering.resolve import Needed


_READS = re.compile(
    r"load|read|open|pickle|restor|resum|checkpoint|ckpt|from_|fetch|get_|getattr|import_module"
    r"|__main__|sys\.modules|instantiate|result"
)
_MOST_OF_VALUE = 2**16  # bytes: nobody has asked for it


@dataclass(frozen=True)
class MadeLater:
    """Definitions that are made on demand, by their names, and the files of their values."""

    definitions: Mapping[str, Later] = field(default_factory=dict)
    data: Data | None = None


def made_later(gathering: Gathering, texts: Iterable[str]) -> MadeLater:
    """Return how each definition is made that the program doesn't have, or why it can't be.

    Each takes about a millisecond, so it is worked out where the program's `texts` have a word of
    those that read something. Elsewhere a run says which name it lacks.
    """
    values: dict[str, Any] = {}
    reads = any(map(_READS.search, texts))
    names = [
        name
        for name, value in [*gathering.notebook.namespace.items()]
        if is_definition(value)
        and name not in gathering.found
        and gathering.definitions.names(value)
    ]
    unread = Later([], "nothing in the cell seems to read a file")
    definitions = {name: _later(name, gathering, values) if reads else unread for name in names}
    return MadeLater(definitions, _data(values, gathering) if values else None)


def _data(values: Mapping[str, Any], gathering: Gathering) -> Data:
    writer = partial(NotebookWriter, definitions=gathering.definitions, seen=Seen())
    objects, arrays = BytesIO(), BytesIO()
    index = write(values, objects, arrays, writer=writer)
    return Data(index.to_json(), objects.getvalue(), arrays.getvalue())


def _later(name: str, gathering: Gathering, values: dict[str, Any]) -> Later:
    inner = gathering.beside()
    inner.want_name(name, f"`{name}`")
    inner.run()
    new = {n: needed for n, needed in inner.found.items() if n not in gathering.found}
    errors = [f.message for f in inner.findings if f.severity is Severity.ERROR]
    if errors:
        return Later([], errors[0])
    for path, needed in new.items():
        if needed.model or (needed.trial and needed.trial.size > _MOST_OF_VALUE):
            return Later([], f"it needs `{path}`, whose value doesn't travel for this")
    steps = [*_steps(new, gathering)]
    values_by_name = {s.text: new[s.text].value for s in steps if not s.line}
    text = "\n".join(step.text for step in steps).encode()
    texts = [
        text,
        *(v.encode(errors="replace") for v in values_by_name.values() if isinstance(v, str)),
    ]
    if any(any(prefixed(t)) or any(secrets_by_context(t, ".py")) for t in texts):
        return Later([], "its text looks like it has a secret")
    values.update(values_by_name)
    return Later(steps)


def _steps(new: dict[str, Needed], gathering: Gathering) -> Iterator[LaterStep]:
    for needed in new.values():
        for line in needed.how.statements if isinstance(needed.how, Import) else ():
            yield LaterStep("", 1, line)
    for item in arrange(new, gathering.history):
        if item.executed is not None:
            statement = item.executed.statement
            yield LaterStep(statement.label, statement.line, statement.text)
        elif item.literal is not None:
            yield LaterStep("", 1, f"{item.name} = {item.literal}")
        elif not item.name.endswith(CACHE):  # which it computes again
            yield LaterStep("", 0, item.name)

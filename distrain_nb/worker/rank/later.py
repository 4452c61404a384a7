"""Definitions of the notebook that are made on demand: the program's text doesn't name them.

`torch.load` and `pickle.load` find a class by its name in `__main__`. So does
`getattr(sys.modules["__main__"], name)`. In the notebook, `__main__` has all definitions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Set, Tuple

from distrain_nb.worker.functions import tell_linecache
from distrain_nb.worker.rank.expected import NotAsInNotebook
from distrain_nb.worker.rank.values import give

LATER = "main.later"  # beside main.py: a JSON object
LATER_VALUES = "main.later.values"  # the folder of their values: no two share an object


class LaterStep(NamedTuple):
    """A text to run: it makes a definition, or something that the definition needs.

    The text is at `line` of the cell `label`. `label` is empty if the text is of no cell. Without a
    line, `text` is the name of a variable or an attribute: it gets its captured value.
    """

    label: str
    line: int
    text: str


class Later(NamedTuple):
    """The steps that make a definition, in order; or a clause that says why it can't be made."""

    steps: List[LaterStep]
    why: str = ""


def written(definitions: Dict[str, Later]) -> str:
    """Write definitions as JSON."""
    return json.dumps({name: [later.steps, later.why] for name, later in definitions.items()})


def read(folder: Path) -> Dict[str, Later]:
    """Return the definitions in a program's folder; none if it has no such file."""
    try:
        data = json.loads((folder / LATER).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {
        name: Later([LaterStep(*step) for step in steps], why)
        for name, (steps, why) in data.items()
    }


def make_on_demand(folder: Path, namespace: Dict[str, Any], flags: int) -> None:
    """Let the module with these names make definitions when something asks for them."""
    definitions = read(folder)
    if definitions:
        namespace["__getattr__"] = _maker(definitions, folder, namespace, flags)


def _maker(
    definitions: Dict[str, Later], folder: Path, namespace: Dict[str, Any], flags: int
) -> Callable[[str], Any]:
    done: Set[Tuple[str, int, str]] = set()

    def make(name: str) -> Any:
        later = definitions.get(name)
        if later is None:
            raise AttributeError(f"module '__main__' has no attribute '{name}'")
        if later.why:
            # Not an AttributeError: pickle replaces that by one without this message.
            raise NotAsInNotebook(
                f"`{name}` of the notebook is not in the run, as the cell doesn't name it and it"
                f" can't be made on demand: {later.why}. Name it in the cell"
            )
        for step in later.steps:
            if step not in done:
                done.add(step)
                _run(step, folder, namespace, flags)
        return namespace[name]

    return make


def _run(step: LaterStep, folder: Path, namespace: Dict[str, Any], flags: int) -> None:
    if not step.line:
        give(step.text, folder / LATER_VALUES, namespace)
        return
    if step.label:
        tell_linecache(step.label, step.line, step.text.split("\n"))
    text = "\n" * (step.line - 1) + step.text
    exec(compile(text, step.label or "main.later", "exec", flags, dont_inherit=True), namespace)

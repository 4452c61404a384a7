"""Write the classes in `distrain_nb/api/keywords.py`: the options as keyword arguments, for
editors and type checkers.

They are made from the declarations of the layout, the job, the backends of this package and the
study. `tests/api/test_keywords.py` compares the file with them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from distrain_nb.backends.options import declared
from distrain_nb.backends.plugins import all_backends
from distrain_nb.layout import OPTIONS, Pool
from distrain_nb.layout.durations import seconds
from distrain_nb.layout.options import SPOT
from distrain_nb.options import JobOptions
from distrain_nb.tuning.options import PARTS, STUDY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from distrain_nb.layout import Option

TARGET = Path(__file__).parents[1] / "distrain_nb" / "api" / "keywords.py"
BEGIN, END = "class Options(TypedDict", "def with_options"
JOBS = '''class Options(TypedDict, total=False):
    """Options of `%%distrain` in Python's spelling; None is an option that is not given.

    A pool is a text such as `3*n1-standard-8+2*T4`, a number of replicas, or a `Pool`; a duration
    is a number of seconds or a text such as `1h30m`.
    """
'''
STUDIES = '''

class StudyOptions(Options, total=False):
    """Options of a study besides those of its trials: see `docs/tuning.md`."""

'''


def text() -> str:
    """Return what the file is to be, with the rest of it as it is."""
    before, _, rest = TARGET.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    of_backends = {
        name: option
        for backend in all_backends()
        if type(backend).__module__.startswith("distrain_nb.")
        for name, option in declared(backend.options).items()
    }
    return "".join(
        [
            before,
            JOBS,
            *_section("where, on which machines, and how long", (*OPTIONS, SPOT)),
            *_section("what travels and what comes back", declared(JobOptions).values()),
            *_section("what only some backends read", of_backends.values()),
            STUDIES,
            *map(_line, (*PARTS.values(), STUDY)),
            f"\n\n{end}{after}",
        ]
    )


def _section(title: str, options: Iterable[Option]) -> Iterator[str]:
    yield f"\n    # {title}\n"
    yield from map(_line, options)


def _line(option: Option) -> str:
    return f"    {option.field}: {kind(option)}\n"


def kind(option: Option) -> str:
    """Return the type of an option's keyword, as Python's source has it."""
    if not option.form:
        return "bool" if option.default is False else "bool | None"
    if option.several:
        return "Texts | None"
    kinds = {Pool.parse: "Pooled", seconds: "Seconds"}
    return f"{kinds.get(option.read, 'Number' if option.form == 'N' else 'str')} | None"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")

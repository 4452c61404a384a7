"""Classes whose name means another one by now, as the statement that made them.

After a cell with a class has run again, objects made before are still of the older class. What
decorators and metaclasses make of a class's body (data classes, enums, named tuples, pydantic's
models) is in no attribute that could be set, so the statement runs again, beside the newer class.
"""

from __future__ import annotations

import re
import sys
from types import CodeType
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence, Tuple

from distrain_nb.worker.fingerprint import PASSED_OVER, fingerprint
from distrain_nb.worker.functions import tell_linecache, without_hooks


class ClassText(NamedTuple):
    """A statement that made a class: `lines` of a cell, `first` (1-based) and on, for the compiler
    with these flags; `name` is the name that it binds."""

    label: str
    first: int
    lines: Tuple[str, ...]
    name: str
    flags: int

    @property
    def where(self) -> str:
        return f"{self.label}, line {self.first}"

    def code(self) -> CodeType:
        text = "\n" * (self.first - 1) + "\n".join(self.lines)
        code: CodeType = compile(text, self.label, "exec", self.flags, dont_inherit=True)
        return code


class OtherClass(ValueError):
    """The statement makes another class than the notebook has."""


def make_older_class(
    main: Any, text: Sequence[Any], older_names: Mapping[str, Any], bases: Iterable[type]
) -> Any:
    """Return the class of a statement, whose functions read the names of `main`. It is not bound
    there. `older_names` have what names meant that mean something else by now. What `bases` do when
    a class is made of them they have done in the notebook, and it is in their state."""
    origin = ClassText(*text)
    names = dict(older_names)
    with without_hooks(bases):
        exec(origin.code(), main, names)
    tell_linecache(origin.label, origin.first, origin.lines)
    return names[origin.name]


def set_older_class(cls: type, state: Tuple[Mapping[str, Any], Mapping[str, str], Any]) -> None:
    """Give an older class its attributes that have changed since. Raises OtherClass where it still
    differs from the notebook's, whose fingerprint the state has, with the Python that took it."""
    attributes, expected, python = state
    for name, value in attributes.items():
        if fingerprint(name, vars(cls).get(name), ()) != fingerprint(name, value, ()):
            type.__setattr__(cls, name, value)
    for path, before, now in differences(cls, expected):
        if "of the code" not in before or tuple(python) == sys.version_info[:2]:
            raise OtherClass(
                f"is of an older class `{cls.__name__}`, whose text makes another one now: `{path}`"
                f" is {before} in the notebook and {now} in the run"
            )


def differences(cls: type, expected: Mapping[str, str]) -> Iterator[Tuple[str, str, str]]:
    """Yield where a class differs from a fingerprint: the path, what is expected, what it has."""
    parts = fingerprint(cls.__name__, cls, ("__main__",))
    # What a package's metaclass keeps on a class, such as an enum's combined flags, is its matter.
    is_plain = type(cls).__module__ in ("builtins", "abc", "__main__")
    for path in sorted({*expected, *parts}, key=len):
        if "the base " in path or (not is_plain and re.search(r"\._", path)):
            continue  # bases are captured, and compared, by themselves
        before, now = expected.get(path, "nothing"), parts.get(path, "nothing")
        if before != now and PASSED_OVER not in (before, now):
            yield path, before, now

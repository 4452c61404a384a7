"""An option as it is declared once: of a layout, a job, a backend or a study.

The parser, `--help`, completion, the form, YAML, Python's keywords and the settings of
`%distrain config` are made from its declaration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from distrain_nb.layout.choices import Choice
    from distrain_nb.layout.layout import Layout

    # What an option can take beside a layout.
    Choices: TypeAlias = Callable[[Layout], Iterable[Choice]]

Kind: TypeAlias = Literal["text", "number", "combo"]  # a combo is a text with a list of what fits


@dataclass(frozen=True)
class Option:
    """An option: its name in Python, how its value is written, and what it is for in a line.

    An option without a `form` is a switch; `grammar` is the whole of a form that `--help` shows in
    short. `short` is another name of it in the magic. `read` makes
    a value of a text and raises ValueError or OptionError, `write` the text again; `several` says
    that it may be given more than once. `words` are all texts that it takes, if these are known,
    and `choices` gives what it can take beside a layout. `part` is its field in what it is read
    into, where that has another name.

    `label` names a field of the form for it, `hint` is what that shows while it is empty, and an
    `extra` field is shown only when asked for, or when it holds something.

    Of an option that a dataclass declares, `split` makes texts of what was written; the function
    `option` of `backends.options` describes the others.
    """

    field: str
    form: str
    help: str
    default: object = None
    grammar: str = ""
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str
    words: tuple[str, ...] = ()
    choices: Choices | None = None
    several: bool = False
    short: str = ""
    part: str = ""
    label: str = ""
    kind: Kind = "text"
    hint: str = ""
    extra: bool = False
    split: Callable[[str], tuple[str, ...]] | None = None
    setting: str = ""
    like: tuple[str, ...] = ()
    elsewhere: str = ""
    bare: str | None = None
    topic: str = ""
    request: tuple[str, ...] = ()
    written_as: str = ""

    @property
    def name(self) -> str:
        """As written in the magic, `--ranks-per-replica`."""
        return self.written_as or flag(self.field)

    @property
    def names(self) -> tuple[str, ...]:
        """All that it can be written as, the shortest first."""
        return (self.short, self.name) if self.short else (self.name,)

    @property
    def expected(self) -> str:
        """What an error asks for."""
        return "an integer" if self.read is int else self.form

    @property
    def written(self) -> str:
        """With its form, `--service-account EMAIL`."""
        return f"{self.name} {self.form}".strip()


def flag(field: str) -> str:
    """Return the option of a name in Python as it is written in the magic."""
    return "--" + field.replace("_", "-")

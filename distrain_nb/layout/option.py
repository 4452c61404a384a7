"""The declaration of an option: of a layout, a job, a backend or a study.

Parser, `--help`, completion, the form, YAML, Python's keywords and the settings of
`%distrain config` are made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from distrain_nb.layout.choices import Choice
    from distrain_nb.layout.layout import Layout

    # Returns the values that an option can have in a layout.
    Choices: TypeAlias = Callable[[Layout], Iterable[Choice]]

Kind: TypeAlias = Literal["text", "number", "combo"]  # a combo is a text with a list of what fits


@dataclass(frozen=True)
class Option:
    """An option: its name in Python, the form of its value, and a line of help.

    An option without a `form` is a switch. `grammar` is the whole form if `--help` abbreviates it.
    `short` is another name in the magic. `read` makes a value of a text. It raises ValueError or
    OptionError. `write` makes the text again. An option with `several` may be given more than
    once. `words` are all texts that it accepts, if they are known. `choices` returns its values for
    a layout. `part` is the field that takes its value, if that field has another name.

    `label` is the name of its field in the form. `hint` is shown while the field is empty. The form
    shows an `extra` field only on demand, or if it has a value.

    `split` makes several texts of the text of an option that a dataclass declares. The function
    `option` of `backends.options` describes all other fields.
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
        """Its name in the magic, `--ranks-per-replica`."""
        return self.written_as or flag(self.field)

    @property
    def names(self) -> tuple[str, ...]:
        """All its names in the magic, the shortest first."""
        return (self.short, self.name) if self.short else (self.name,)

    @property
    def expected(self) -> str:
        """The form of a value, as errors ask for it."""
        return "an integer" if self.form == "N" else self.grammar or self.form

    @property
    def written(self) -> str:
        """Name and form, `--service-account EMAIL`."""
        return f"{self.name} {self.form}".strip()


def flag(field: str) -> str:
    """Return the name in the magic of an option with this name in Python."""
    return "--" + field.replace("_", "-")

"""The fields of a form that its place's backend declares: options with a label."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from distrain_nb.backends.options import declared
from distrain_nb.backends.plugins import find, option_choices
from distrain_nb.errors import OptionError
from distrain_nb.layout.options import quoted, words_of
from distrain_nb.ui.form.fields import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from distrain_nb.backends.options import Declaration
    from distrain_nb.layout import Layout
    from distrain_nb.layout.choices import Choice

OWN = "own"  # their paths are `own.NAME`


def own_fields(place: str) -> Iterator[tuple[str, Field]]:
    """The fields of a place, each with its path."""
    for option in _labelled(place):
        kind = "combo" if option.choices else "text"
        name = f"{OWN}-{option.field}"  # the page's class for it, which others have of theirs
        yield f"{OWN}.{option.field}", Field(name, option.label, kind, option.form)


def own_choices(layout: Layout) -> dict[str, tuple[Choice, ...]]:
    """What they can take beside a layout, by path, of those that say so."""
    names = [option.field for option in _labelled(layout.on) if option.choices]
    return {f"{OWN}.{name}": option_choices(layout, name) for name in names}


def own_words(place: str, texts: Mapping[str, str]) -> list[str]:
    """The options of a cell that say the same as the texts of a place's fields, by name."""
    options = [option for option in _labelled(place) if texts.get(option.field)]
    return [f"{option.name} {quoted(texts[option.field])}" for option in options]


def from_line(line: str) -> tuple[str, dict[str, str]]:
    """A line without the options that fields of its place stand for, and their texts by name."""
    all_words = words_of(line)
    flags = {option.name: option.field for option in _labelled(_place(all_words))}
    left, texts, words = [], {}, iter(all_words)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in flags:
            texts[flags[flag]] = value if equals else next(words, "")
        else:
            left.append(quoted(word))
    return " ".join(left), texts


def _place(words: list[str]) -> str:
    """What `--on` says, of which the last counts."""
    found = [after for word, after in pairwise(words) if word == "--on"]
    found += [word.partition("=")[2] for word in words if word.startswith("--on=")]
    return found[-1] if found else ""


def _labelled(place: str) -> Iterator[Declaration]:
    try:
        options = declared(find(place).options)
    except OptionError:  # a place that takes no jobs has layouts all the same
        return
    yield from (option for option in options.values() if option.label)

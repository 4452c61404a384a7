"""Reads YAML of strangers: every scalar stays a text, and nothing grows beyond bounds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from distrain_nb.errors import OptionError

MOST_CHARACTERS = 100_000
_DEEPEST = 50


def yaml_texts(text: str) -> Any:
    """Parse YAML, and leave every scalar a text.

    Raises OptionError if it is not YAML, or far larger than any layout. With aliases expanded, it
    may have 100,000 characters and 50 levels.
    """
    import yaml

    check_length(text)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _check_size(yaml.parse(text, Loader=loader))
        return yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError) as error:
        raise OptionError(f"not YAML: {error}") from None


def check_length(text: str, kind: str = "layouts", most: int = MOST_CHARACTERS) -> None:
    """Raise OptionError for a text that is far longer than any layout, or than `kind` it is."""
    if len(text) > most:
        raise OptionError(
            f"the text is {len(text):,} characters long; {kind} are read up to {most:,}"
        )


def _check_size(events: Iterable[Any]) -> None:
    """Raise OptionError where the aliases of a document make it too large, or endless."""
    import yaml

    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []  # the anchors of what is open, and its size so far
    size = 0
    for event in events:
        anchor = getattr(event, "anchor", None)
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append((anchor, size))
            size = 1
            if len(open_) > _DEEPEST:
                raise OptionError(f"the YAML is more than {_DEEPEST} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            sizes |= {anchor: size} if anchor else {}
            size += before
        elif isinstance(event, yaml.ScalarEvent):
            sizes |= {anchor: 1 + len(event.value)} if anchor else {}
            size += 1 + len(event.value)
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == name for name, _ in open_):
                raise OptionError(f"the YAML's alias *{anchor} stands for something it is in")
            size += sizes.get(anchor or "", 1)
        if size > MOST_CHARACTERS:
            raise OptionError(
                f"the YAML has more than {MOST_CHARACTERS:,} characters once its aliases are "
                "written out"
            )

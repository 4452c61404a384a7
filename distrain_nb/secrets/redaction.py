"""Text that is kept or shown: without the secrets that may be in it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from distrain_nb.secrets.forms import secrets_by_context
from distrain_nb.secrets.guard import HIDDEN, STORED, is_secret
from distrain_nb.secrets.names import is_secret_by_name
from distrain_nb.secrets.prefixes import prefixed

# A value as short as `1` is no secret, and stands everywhere; one of a few signs may be a word's
# part, and of a long one a message may have the beginning only.
_SHORTEST, _FEW, _BEGINNING = 4, 8, 32
_LONG = 1_000  # signs: no value that is secret for its name and its looks has as many
# A word as a shell reads it, whether or not its quotes are closed.
_WORD = r"(?:\\.|'[^']*(?:'|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)|[^\s'\"\\])+"
_ANY_WORD = re.compile(_WORD)
# `--env`, and what may be meant for it.
_VARIABLE = re.compile(
    rf"(?<![\w-])(?P<option>(?:-e|--[\w-]*env[\w-]*)(?:=|(?:\s|\\\n)+))(?P<word>{_WORD})"
)
ASSIGNED = re.compile(r"(?m)^((?P<name>\w+) = )[rb]?(?P<value>['\"].{1,1000}['\"])$")
_NAME = re.compile(r"([A-Za-z][\w-]*)=")


def redacted(text: str, values: Iterable[str] = ()) -> str:
    """Return the text without these values, and without the rest of each line from where it looks
    like a secret; of a private key, without all that follows."""
    forms = {form for value in values for form in (value, repr(value)[1:-1])}
    for value in sorted(forms, key=len, reverse=True):
        text = _without(value, text)
    data = text.encode(errors="backslashreplace")
    for match in sorted(chain(prefixed(data), secrets_by_context(data, ".py")), reverse=True):
        end = -1 if match.kind == "a private key" else data.find(b"\n", match.start)
        data = data[: match.start] + HIDDEN.encode() + (data[end:] if end >= 0 else b"")
    return data.decode()


def redacted_source(text: str) -> str:
    """Return the source text without what looks like a secret, by its look or by a name `NAME =
    "…"`."""

    def without_value(line: re.Match[str]) -> str:
        return f"{line[1]}'{HIDDEN}'" if is_secret_by_name(line["name"], line["value"]) else line[0]

    return redacted(ASSIGNED.sub(without_value, text))


def env_values(options: str) -> Iterator[str]:
    """Yield the values that `--env` is given, as they stand there and as a shell reads them."""
    for match in _VARIABLE.finditer(options):
        for word in (match["word"], _read(match["word"])):
            value = word.partition("=")[2]
            if value and not value.startswith(STORED):
                yield value


def redacted_options(options: str, placeholders: Collection[str] = ()) -> str:
    """Return options of a job without what `--env` is given and what looks like a secret. A value
    that has one of these placeholders is not written out, and stays."""

    def without_value(match: re.Match[str]) -> str:
        word = match["word"]
        name, equals, value = word.partition("=")
        is_shown = not equals or value.startswith(STORED) or _any_in(placeholders, value)
        return match[0] if is_shown else f"{match['option']}{name}={_instead(value, word)}"

    def without_secrets(match: re.Match[str]) -> str:
        word = match[0]
        return word if _any_in(placeholders, word) else redacted_word(word)

    return redacted(_ANY_WORD.sub(without_secrets, _VARIABLE.sub(without_value, options)))


def redacted_word(word: str) -> str:
    """Return a word as it may be shown, such as `--name=VALUE` of a name that speaks of secrets."""
    first = _NAME.search(word)
    begin = first.end() if first else 0
    if is_secret("", word[begin:].replace(HIDDEN, "")):
        return f"{word[:begin]}{_instead(word[begin:], word)}"
    if is_secret("", word):
        return HIDDEN
    for match in _NAME.finditer(word):
        end = match.end()
        value = word[end : end + _LONG].replace(
            HIDDEN, ""
        )  # or a row of names takes quadratic time
        is_shown = not value or value.startswith((STORED, "$(", "${"))
        if not is_shown and is_secret_by_name(match[1].replace("-", "_"), value):
            return f"{word[:end]}{_instead(word[end:], word)}"
    return word


def _without(value: str, text: str) -> str:
    if len(value) < _SHORTEST:
        return text
    if len(value) < _FEW:
        return re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-]|\.\w)", HIDDEN, text)
    text = text.replace(value, HIDDEN)
    begins = re.escape(value[:_BEGINNING])
    return re.sub(rf"{begins}[^'\"\n]*", HIDDEN, text) if len(value) > _BEGINNING else text


def _read(word: str) -> str:
    try:
        return "".join(shlex.split(word))
    except ValueError:  # a quote that is not closed
        return word.strip("'\"")


def _any_in(placeholders: Collection[str], text: str) -> bool:
    return any(placeholder in text for placeholder in placeholders)


def _instead(value: str, word: str) -> str:
    """Return the text that hides a word's value. It has the closing quote and as many lines."""
    quote = word[0] if word[0] in "'\"" else ""
    return HIDDEN + quote + "\n" * value.count("\n")

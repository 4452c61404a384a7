"""Whether a value looks random, as keys do, or plain: words, and what stands for another value."""

from __future__ import annotations

import re

_HELD = re.compile(
    r"\{\{[^{}]*\}\}|\{[\w. ]*\}|\$\{\w+\}|%\(\w+\)s|<(?:[a-z _-]*|[A-Z _-]*)>"
    r"|^(?:\$(?:[a-z_][a-z0-9_]*|[A-Z_][A-Z0-9_]*)|%\w+%|%s)\Z"
)
_FOREIGN_LETTER = re.compile(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|[^\x00-\x7f]")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PARTS = re.compile(r"[_\-./: ]+")
# What a value is for: words of manuals too, unless the rest of the value is drawn.
_PURPOSE = re.compile(r"(?i)(?<![a-z])(?:secret|password|passwd|hunter|testing|test)(?![a-z])")
_IN_MANUALS = re.compile(
    r"(?i)(?<![a-z])(?:example|sample|dummy|fake|changeme|placeholder|redacted|your)(?![a-z])|x{5}|\.{3}|\*{3}\Z|12345678|abcdefgh|deadbeef|0{8}"
    r"|^(?:my|your)?(?:pass|pw|abc|foo|bar|user|admin|key|token)?(?:123|1234|12345|123456|\d)?\Z"
)
_DRAWN = re.compile(r"[\w+/=.~-]{16,512}", re.ASCII)
_FEWEST_SIGNS, _LONGEST_WORD, _LONG = 8, 16, 20
_FEWEST_IN_A_TEXT = 4
_SHORT, _MEAN_WORD = 3, 3.5
_ABBREVIATED = 4
_VOWEL = re.compile("(?i)[aeiouy]")
_CONSONANTS = re.compile("(?i)[b-df-hj-np-tv-xz]{6}")


def looks_random(value: str) -> bool:
    """Return whether a value is of signs that keys have, in an order that no words have."""
    return (
        _DRAWN.fullmatch(value) is not None
        and len(set(value)) >= _FEWEST_SIGNS
        and (len(value) >= _LONG or any(sign.isdigit() for sign in value))
        and not is_plain(value)
    )


def is_plain(value: str) -> bool:
    """Return whether a value is words, or stands for another: such as manuals, identifiers,
    references to variables, paths and names of versions have."""
    value = _HELD.sub("", _FOREIGN_LETTER.sub("a", value))
    if len(set(value)) < _FEWEST_IN_A_TEXT or _IN_MANUALS.search(value):
        return True
    if _PURPOSE.search(value):
        return not looks_random(_PURPOSE.sub("", value).strip("_-."))
    parts = [part for part in _PARTS.split(value) if part]
    has_words = any(part.isalpha() and len(part) > _SHORT for part in parts)
    return all(_is_word(part, beside_words=has_words) for part in parts)


def _is_word(part: str, *, beside_words: bool) -> bool:
    """Return whether a part of a value is a word: `model`, `clientSecret`; beside others `v2`
    too."""
    if beside_words and len(part) <= _SHORT and part.isalnum():
        return True
    if not part.isalpha():
        return False
    words = _CAMEL.findall(part) or [part]
    is_read = max(map(len, words)) <= _LONGEST_WORD and all(map(_is_spoken, words))
    shouts = not part.isupper() and any(w.isupper() and len(w) > _ABBREVIATED for w in words)
    return is_read and not shouts and (len(words) == 1 or len(part) / len(words) >= _MEAN_WORD)


def _is_spoken(word: str) -> bool:
    """Return whether somebody could say it: no row of consonants is longer than those of words."""
    return len(word) <= _ABBREVIATED or (
        _VOWEL.search(word) is not None and _CONSONANTS.search(word) is None
    )

"""Secrets that their name gives away: a literal beside it that is not plain words, in any syntax.

A name is looked for by its last word, then what joins it to a literal, then the literal: each in a
window of bounded length, so that a text takes time in proportion to its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from distrain_nb.secrets.names import is_secret_by_name, is_secret_name
from distrain_nb.secrets.prefixes import SecretMatch
from distrain_nb.secrets.randomness import is_plain, looks_random

_PLAIN = "a secret that is written out"
_LONGEST_NAME = 60
_SHORTEST = 6
# The last word of a name, in lower case.
LAST_WORD = re.compile(
    rb"(?:passw(?:or)?d|passphrase|pwd|pw|pass|secret|token|key|pat|connection_?string|credentials?"
    rb"|login|auth|cookie)_?\d{0,2}(?![\w-])"
)
NAME = re.compile(rb"[\w-]{1,60}\Z")
_NUMBER = re.compile(r"_?\d{1,2}\Z")
_SPACE = r"(?:\s|\\{1,7}[nrt\n]){0,20}"
_QUOTED = (
    r"(?P<kind>[rRbBuUfF]{0,2})\\{0,7}"
    r"(?:(?:\"{3}|\")(?P<double>[^\"\s]{6,512})\"|(?:'{3}|')(?P<single>[^'\s]{6,512})')"
)
# What is between a name and its literal.
_JOINED = re.compile(
    (
        rf"(?P<quote>\\{{0,7}}[\"'`])?(?:{_SPACE}\])?"
        rf"(?:{_SPACE}:{_SPACE}[A-Za-z][\w.\[\]|, \"']{{0,40}}?(?={_SPACE}=))?"  # an annotation
        rf"{_SPACE}(?::=|=>|[=!]=|[:=]|(?P<comma>,)|(?P<call>\())"
        rf"{_SPACE}(?P<value>\\{{0,7}}[\"']?(?:default|value|val)\\{{0,7}}[\"']?{_SPACE}[=:]{_SPACE})?"
        rf"(?:[\w.]{{0,20}}(?:[Ss]ecret\w{{0,10}}|str|bytes))?(?:\({_SPACE})?{_QUOTED}"
    ).encode()
)
_LOGIN = re.compile(
    rf"\({_SPACE}(?P<word>\w{{0,30}}(?:key|token|passw(?:or)?d|pw|auth){_SPACE}={_SPACE})?{_QUOTED}".encode()
)
_CALLED = re.compile(rb"\(\s{0,20}\\{0,7}[\"']\Z")
# Of a command, a variable of a shell, a query: without quotes.
_BARE_VALUE = rb"(?P<bare>[^\s\"'`,;()\[\]<>|&\\]{6,512})"
_BARE = re.compile(rb"(?:=| {1,3}(?![-=:]))" + _BARE_VALUE)
_IN_QUERY = re.compile(rb"=(?=[^\s\"'&]{16})" + _BARE_VALUE)
_BARE_SPACED = re.compile(rb" {0,3}[= ] {0,3}" + _BARE_VALUE)
_SETTING = re.compile(rb"[ \t]{0,9}[:=][ \t]{0,9}" + _BARE_VALUE + rb"[ \t\r]{0,9}$", re.MULTILINE)
_SETS = re.compile(rb"(?:[\"'?&]|(?:env|export|set|ENV|ARG|-[ex]|--[\w-]{0,20}env)[ =])\Z")
_LINE_BEGINS = re.compile(rb"(?:^|\n)[ \t]{0,20}(?:- )?\Z")


def named_literals(data: bytes, *, settings: bool = False) -> Iterator[SecretMatch]:
    """Yield the literals of a text that stand beside a name that speaks of a secret. In `settings`
    a value needs no quotes."""
    for hit in LAST_WORD.finditer(data.lower()):
        name = NAME.search(data, max(hit.start() - _LONGEST_NAME, 0), hit.end())
        if name is None:
            continue
        value = _quoted(data, hit, name) or _bare(data, hit, name, settings=settings)
        if value is not None and is_beside(name, data, value[1]):
            yield SecretMatch(value[0], _PLAIN)


def is_beside(name: re.Match[bytes], data: bytes, literal: bytes) -> bool:
    """Return whether a literal that stands beside a name is a secret by that name."""
    text = literal.decode(errors="replace").rstrip("\\")
    if len(text) < _SHORTEST or is_plain(text):
        return False
    before = data[max(name.start() - 2, 0) : name.start()]
    word = name[0].decode(errors="replace").strip("-").replace("-", "_")
    if before.endswith(b"\\") and word[0] in "nrt":  # an escaped line break
        word = word[1:]
    word = _NUMBER.sub("", word)
    is_type = before == b"::"
    # `NextToken` and its like are how services page, in their APIs' spelling.
    is_told = word.isupper() or word.islower() or word.lower().endswith("key")
    return not is_type and (
        word == "login" or is_secret_name(word) or (is_told and is_secret_by_name(word, text))
    )


def _quoted(data: bytes, hit: re.Match[bytes], name: re.Match[bytes]) -> tuple[int, bytes] | None:
    """Return the literal in quotes that is joined to the name, and where it begins."""
    form = _LOGIN if hit[0] == b"login" else _JOINED
    joined = form.match(data, hit.end())
    if joined is None:
        return None
    group = "double" if joined["double"] else "single"
    literal = joined[group]
    if b"f" in joined["kind"].lower() and b"{" in literal:
        return None
    if form is _LOGIN:
        is_key = joined["word"] or looks_random(literal.decode("utf-8", "replace"))
        return (joined.start(group), literal) if is_key else None
    is_argument = _CALLED.search(data, max(name.start() - 40, 0), name.start())
    is_option = name[0].startswith(b"--")
    is_listed = joined["comma"] and not (
        joined["quote"] and (is_argument or is_option or joined["value"])
    )
    is_called = joined["call"] and not name[0].lower().startswith(b"set")
    return None if is_listed or is_called else (joined.start(group), literal)


def _bare(
    data: bytes, hit: re.Match[bytes], name: re.Match[bytes], *, settings: bool
) -> tuple[int, bytes] | None:
    """Return the literal without quotes that is joined to the name, and where it begins."""
    before = data[max(name.start() - 30, 0) : name.start()]
    match = None
    if name[0].startswith(b"--"):
        match = _BARE.match(data, hit.end())
    elif sets := _SETS.search(before):
        form = _IN_QUERY if sets[0] in b"?&" else _BARE if sets[0] in b"\"'" else _BARE_SPACED
        match = form.match(data, hit.end())
    if match is None and settings and _LINE_BEGINS.search(before):
        match = _SETTING.match(data, hit.end())
    return (match.start("bare"), match["bare"]) if match else None

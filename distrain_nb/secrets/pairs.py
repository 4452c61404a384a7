"""Secrets that code puts beside their names in other ways than `name = "…"`: several values at
once, a login's second value, a default behind `or`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from distrain_nb.secrets.named import LAST_WORD, NAME, is_beside
from distrain_nb.secrets.prefixes import SecretMatch
from distrain_nb.secrets.randomness import is_plain

_KIND = "a secret that is written out"
_WINDOW, _BEHIND = 200, 600
_QUOTED = rb"[rRbBuU]{0,2}\\{0,7}(?:\"([^\"\n\\]{1,512})\\{0,7}\"|'([^'\n\\]{1,512})\\{0,7}')"
_SPACE = rb"[ \t]{0,9}"
_TARGET = rb"[A-Za-z_][\w.]{0,60}"
_ITEM = rb"(?:" + _QUOTED.replace(b"(", b"(?:").replace(b"(?:?:", b"(?:") + rb"|[\w.()-]{1,60})"
_COMMA = _SPACE + b"," + _SPACE
# user, password = "ada", "…"
_UNPACKED = re.compile(
    rb"(?P<names>(?:" + _TARGET + _COMMA + rb"){1,5}" + _TARGET + rb")\)?" + _SPACE + rb"=(?!=)"
    + _SPACE + rb"\(?(?P<values>" + _ITEM + rb"(?:" + _COMMA + _ITEM + rb"){1,5})"
)  # fmt: skip
_AMONG_NAMES = re.compile(rb"[ \t]{0,9}(?:(?P<more>,)[^\n=\"']{1,200}=|\)?[ \t]{0,9}=(?!=))")
_VALUE = re.compile(_QUOTED + rb"|[\w.()-]{1,60}")
# auth=("ada", "…"), login("ada", "…"), HTTPBasicAuth("ada", "…")
_LOGIN_WORD = re.compile(rb"auth|login|credential")
_WHOLE_WORD = re.compile(rb"(?:\A|[^a-z]|basic|digest)(?:auth|login|credential)\Z")
_LOGIN = re.compile(
    rb"s?\\{0,7}[\"']?\s{0,9}(?:[=:]\s{0,9}(?:[\w.]{1,60})?)?[(\[]\s{0,9}"
    + _QUOTED
    + rb"\s{0,9},\s{0,9}(?:\w{1,20}\s{0,3}=\s{0,3})?"
    + _QUOTED
    + rb"\s{0,9},?\s{0,9}[)\]]"
)
# password = os.environ.get("P") or "…"
_DEFAULT = re.compile(
    rb"\\{0,7}[\"']?\]?(?:\s{0,9}=(?!=)[ \t]{0,9}[^\n=#;]{1,120}?|[ \t]{0,9}[)\]])[ \t]{1,9}"
    rb"(?:or|else)[ \t]{1,9}" + _QUOTED
)
_LONGEST_COMMON = 3


def paired_literals(data: bytes, lower: bytes) -> Iterator[SecretMatch]:
    """Yield the literals in code that stand for a secret by the place that they have; *lower* is
    the text in lower case."""
    for hit in LAST_WORD.finditer(lower):
        name = NAME.search(data, max(hit.start() - 60, 0), hit.end())
        if name is None:
            continue
        value = _unpacked(data, hit, name) or _default(data, hit)
        if value and is_beside(name, data, value[1]):
            yield SecretMatch(value[0], _KIND)
    for hit in _LOGIN_WORD.finditer(lower):
        match = _LOGIN.match(data, hit.end())
        if match and _WHOLE_WORD.search(lower[max(hit.start() - 7, 0) : hit.end()]):
            group = 3 if match[3] else 4
            second = (match[group] or b"").decode(errors="replace")
            if len(second) > _LONGEST_COMMON and not is_plain(second):
                yield SecretMatch(match.start(group), _KIND)


def _unpacked(data: bytes, hit: re.Match[bytes], name: re.Match[bytes]) -> tuple[int, bytes] | None:
    """Return the literal at the name's position among several values."""
    begin = max(data.rfind(b"\n", 0, hit.start()) + 1, hit.start() - _WINDOW)
    among = _AMONG_NAMES.match(data, hit.end())
    if not among or not (among["more"] or b"," in data[begin : name.start()]):
        return None
    match = _UNPACKED.search(data, begin, hit.end() + _BEHIND)
    if match is None or not match.start("names") <= name.start() < match.end("names"):
        return None
    position = data.count(b",", match.start("names"), name.start())
    values = list(_VALUE.finditer(data, match.start("values"), match.end("values")))
    if position >= len(values):
        return None
    value = values[position]
    group = 1 if value[1] else 2
    return (value.start(group), value[group]) if value[group] else None


def _default(data: bytes, hit: re.Match[bytes]) -> tuple[int, bytes] | None:
    match = _DEFAULT.match(data, hit.end())
    if match is None:
        return None
    group = 1 if match[1] else 2
    return match.start(group), match[group]

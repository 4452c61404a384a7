"""Colours that programs write as ANSI escapes, as HTML."""

from __future__ import annotations

import html
import re

_ESCAPE = re.compile(
    r"\x1b\[([0-9;]*)m"  # colours
    r"|\x1b\[[0-9;?]*[A-Za-ln-z]"  # movements of the cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
)
_NO_CODE = 1000
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def to_html(text: str) -> str:
    """Escaped text with a span for each stretch of colour; other escapes are left out."""
    parts: list[str] = []
    style: frozenset[str] = frozenset()
    at = 0
    for escape in _ESCAPE.finditer(text):
        parts.append(_span(text[at : escape.start()], style))
        at = escape.end()
        if escape.group(1) is not None:
            style = _after(style, escape.group(1))
    parts.append(_span(text[at:], style))
    return "".join(parts)


def plain(text: str) -> str:
    """The text without escapes."""
    return _ESCAPE.sub("", text)


def _span(text: str, style: frozenset[str]) -> str:
    escaped = html.escape(text, quote=False)
    if not style or not text:
        return escaped
    return f'<span class="{" ".join(sorted(style))}">{escaped}</span>'


def _after(style: frozenset[str], codes: str) -> frozenset[str]:
    numbers = [int(code or 0) if len(code) < 4 else _NO_CODE for code in codes.split(";")]
    if numbers[0] in (38, 48):  # 256 or 24-bit colours, which no theme can answer for
        return style
    for number in numbers:
        style = _with(style, number)
    return style


def _with(style: frozenset[str], code: int) -> frozenset[str]:
    if code == 0:
        return frozenset()
    if code in (1, 2, 3, 4):
        return style | {("bold", "dim", "italic", "underline")[code - 1]}
    if code == 22:
        return style - {"bold", "dim"}
    if code in (23, 24):
        return style - {("italic", "underline")[code - 23]}
    others = frozenset(name for name in style if not name.startswith("ansi-"))
    if 30 <= code <= 37 or 90 <= code <= 97:
        return others | {f"ansi-{_COLOURS[code % 10]}"}
    return others if code == 39 else style

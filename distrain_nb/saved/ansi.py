"""Colours that programs write as ANSI escapes, as HTML; `page/src/log/ansi.js` does the same."""

from __future__ import annotations

import html
import math
import re
from dataclasses import dataclass, replace

from distrain_nb.escapes import COLOUR, CONTROL

_ESCAPE = re.compile(f"{COLOUR}|{CONTROL}")
_COLOUR_SPACE = re.compile(r"([34]8:2):\d*:(\d+:\d+:\d+)")
_CURLY = re.compile(r"(^|;)4:[1-5]")
_NO_CODE = 1000
_HUES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_NAMES = (*_HUES, *(f"bright-{hue}" for hue in _HUES))
_TERMINAL = (
    *("#000000", "#cd0000", "#00cd00", "#cdcd00", "#0000ee", "#cd00cd", "#00cdcd", "#e5e5e5"),
    *("#7f7f7f", "#ff0000", "#00ff00", "#ffff00", "#5c5cff", "#ff00ff", "#00ffff", "#ffffff"),
)
_CUBE = (0, 95, 135, 175, 215, 255)
_BLACK, _WHITE, _LIGHT = "#000000", "#ffffff", "#c0c0c0"
_READABLE = 3.0  # contrast
_MARKS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 9: "strike"}
_ENDS = {22: {"bold", "dim"}, 23: {"italic"}, 24: {"underline"}, 29: {"strike"}}


@dataclass(frozen=True)
class _Style:
    """Colours are one of `_NAMES` or `#rrggbb`; an empty one is the page's own."""

    marks: tuple[str, ...] = ()
    ink: str = ""
    under: str = ""
    inverse: bool = False


def to_html(text: str) -> str:
    """Escape a text, with a span for each stretch of colour; leave other escapes out."""
    parts: list[str] = []
    style = _Style()
    at = 0
    for escape in _ESCAPE.finditer(text):
        parts.append(_span(text[at : escape.start()], style))
        at = escape.end()
        if escape.group(1) is not None:
            style = _after(style, escape.group(1))
    parts.append(_span(text[at:], style))
    return "".join(parts)


def _span(text: str, style: _Style) -> str:
    escaped = html.escape(text, quote=False)
    names, colours = _look(style)
    if not names or not text:
        return escaped
    attribute = f' style="{colours}"' if colours else ""
    return f'<span class="{names}"{attribute}>{escaped}</span>'


def _look(style: _Style) -> tuple[str, str]:
    """Return classes and CSS: both colours as in a terminal where both are given; ink alone is what
    the theme can show."""
    ink, under = style.ink, style.under
    if style.inverse and not ink and not under:
        return " ".join((*style.marks, "ansi-inverse")), ""
    if style.inverse:
        ink, under = under, ink or _LIGHT
    if under:
        ground = _as_terminal(under)
        shown = _as_terminal(ink) if ink else ""
        if not shown or _contrast(shown, ground) < _READABLE:
            shown = max(_BLACK, _WHITE, key=lambda plain: _contrast(plain, ground))
        return " ".join((*style.marks, "ansi-box")), f"--dn-ink:{shown};--dn-under:{ground}"
    if ink.startswith("#"):
        return " ".join((*style.marks, "ansi-ink")), f"--dn-ink:{ink}"
    return " ".join((*style.marks, *((f"ansi-{ink}",) if ink else ()))), ""


def _after(style: _Style, codes: str) -> _Style:
    codes = _CURLY.sub(r"\g<1>4", _COLOUR_SPACE.sub(r"\1:\2", codes))
    words = re.split("[;:]", codes)
    numbers = [int(word or 0) if len(word) < 4 else _NO_CODE for word in words]
    while numbers:
        code = numbers.pop(0)
        style = _extended(style, code, numbers) if code in (38, 48, 58) else _simple(style, code)
    return style


def _simple(style: _Style, code: int) -> _Style:
    if code == 0:
        return _Style()
    if code in _MARKS:
        return replace(style, marks=tuple(dict.fromkeys((*style.marks, _MARKS[code]))))
    if code in _ENDS:
        return replace(style, marks=tuple(m for m in style.marks if m not in _ENDS[code]))
    if code in (7, 27):
        return replace(style, inverse=code == 7)
    tens, hue = divmod(code, 10)
    if hue == 9 and tens in (3, 4):
        return replace(style, ink="") if tens == 3 else replace(style, under="")
    if hue > 7 or tens not in (3, 4, 9, 10):
        return style
    name = _NAMES[hue + (8 if tens >= 9 else 0)]
    return replace(style, ink=name) if tens in (3, 9) else replace(style, under=name)


def _extended(style: _Style, code: int, rest: list[int]) -> _Style:
    """Return one of 256 colours, or red, green and blue, taken from what follows."""
    kind = rest.pop(0) if rest else 0
    count = {5: 1, 2: 3}.get(kind, 0)
    parts = rest[:count]
    del rest[:count]
    if not parts or max(parts) > 255 or code == 58:
        return style
    colour = _indexed(parts[0]) if kind == 5 else _hex(parts)
    return replace(style, ink=colour) if code == 38 else replace(style, under=colour)


def _indexed(number: int) -> str:
    if number < 16:
        return _NAMES[number]
    if number >= 232:
        return _hex([8 + 10 * (number - 232)] * 3)
    return _hex([_CUBE[(number - 16) // size % 6] for size in (36, 6, 1)])


def _hex(parts: list[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in parts)


def _as_terminal(colour: str) -> str:
    return _TERMINAL[_NAMES.index(colour)] if colour in _NAMES else colour


def _luminance(colour: str) -> float:
    parts = zip((0.2126, 0.7152, 0.0722), (1, 3, 5), strict=True)
    return sum(share * math.pow(int(colour[at : at + 2], 16) / 255, 2.2) for share, at in parts)


def _contrast(ink: str, ground: str) -> float:
    low, high = sorted((_luminance(ink), _luminance(ground)))
    return (high + 0.05) / (low + 0.05)

"""The guard for texts that leave this machine: exported files, notices, webhooks, mails, trackers.

A text that leaves is prose: a value stands in it without quotes, beside its name or alone. So more
is hidden than what would keep a job from its start: the values of this process's environment, those
that the run's own code writes out, a `Bearer` token, the 40 digits of a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from html import escape, unescape
from pathlib import Path
from typing import Any, TypeVar, cast

from distrain_nb.secrets.forms import secrets_by_context
from distrain_nb.secrets.guard import HIDDEN, is_secret
from distrain_nb.secrets.named import LAST_WORD, NAME, is_beside
from distrain_nb.secrets.names import is_secret_by_name
from distrain_nb.secrets.redaction import ASSIGNED, redacted, redacted_options
from distrain_nb.worker.machine.environment import variables

T = TypeVar("T")

_MOST_CODE = 4 << 20
# `password=…`, `api_key: …` in the middle of a sentence.
_BESIDE = re.compile(
    rb"[\"'`]?[ \t]{0,3}[:=][ \t]{0,3}[\"'`]?(?P<bare>[^\s\"'`,;(){}\[\]<>|&\\]{6,512})"
)
# 40 digits are a key of Weights & Biases, but also a commit.
_DIGITS = re.compile(r"(?<![\w:/@.-])[0-9a-f]{40}(?![\w.-])")
_COMMIT = re.compile(r"(?i)\b(?:commit|revision|rev|sha|sha1|hash|head|at|checkout)\W{0,6}\Z")
_DIGIT = re.compile(r"\d")
_LITERAL = re.compile(rb"[^\s\"'`,;()\[\]<>|&\\]+")
_TEXT_OF_HTML = re.compile(r">([^<>]+)<|((?:aria-label|title|alt|data-[\w-]+)=\")([^\"]*)(\")")
_SHORTEST = 4  # signs of a text that may be a secret


class Guard:
    """What hides the secrets of one run in texts about it: `values` are those known by heart."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = tuple(dict.fromkeys(values))

    @classmethod
    def of_run(cls, program: Path) -> Guard:
        """Return the guard for texts about a run whose program is in this folder."""
        return cls(_written_out(program))

    def text(self, text: str) -> str:
        """Return the text, which may quote options, with `***` in the place of what looks like a
        secret."""
        return self.line(redacted_options(text)) if len(text) >= _SHORTEST else text

    def line(self, text: str) -> str:
        """Return a line of a log as `text` does; it is not read as options, which takes ten times
        as long."""
        values = (*self._values, *_environment_secrets(frozenset(variables().items())))
        return _without_digits(_without_named(redacted(text, values)))

    def texts(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return names and values without secrets; a name may say that its value is one."""
        return {
            self.text(name): HIDDEN if is_secret_by_name(name, value) else self.text(value)
            for name, value in texts.items()
        }

    def fields(self, value: T) -> T:
        """Return a record, a list, a mapping or a text with each text in it as `text` has it."""
        return cast("T", self._of(value))

    def by_name(self, values: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, Any]]:
        """Return tables of values, numbers and others, as `texts` returns one of texts."""
        return {
            self.text(table): {
                self.text(name): value
                if isinstance(value, (bool, int, float))
                else self.texts({name: str(value)}).popitem()[1]
                for name, value in named.items()
            }
            for table, named in values.items()
        }

    def html(self, fragment: str) -> str:
        """Return a piece of HTML with what it shows as `text` has it; its markup stays."""

        def shown(match: re.Match[str]) -> str:
            if match[1] is not None:
                return f">{self._escaped(match[1])}<"
            return f"{match[2]}{self._escaped(match[3])}{match[4]}"

        return _TEXT_OF_HTML.sub(shown, fragment)

    def _escaped(self, part: str) -> str:
        text = unescape(part)
        clean = self.text(text)
        return part if clean == text else escape(clean)

    def _of(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if is_dataclass(value) and not isinstance(value, type):
            parts = {f.name: self._of(getattr(value, f.name)) for f in fields(value) if f.init}
            return replace(value, **parts)
        if isinstance(value, Mapping):
            return {self._of(key): self._of(part) for key, part in value.items()}
        if type(value) in (tuple, list):
            return type(value)(map(self._of, value))
        return value


def _without_named(text: str) -> str:
    data = text.encode(errors="backslashreplace")
    spans = []
    for hit in LAST_WORD.finditer(data.lower()):
        name = NAME.search(data, max(hit.start() - 60, 0), hit.end())
        value = _BESIDE.match(data, hit.end()) if name else None
        if name and value and is_beside(name, data, value["bare"]):
            spans.append(value.span("bare"))
    for begin, end in reversed(spans):
        data = data[:begin] + HIDDEN.encode() + data[end:]
    return data.decode(errors="replace") if spans else text


def _without_digits(text: str) -> str:
    def hidden(match: re.Match[str]) -> str:
        is_commit = _COMMIT.search(text[max(match.start() - 20, 0) : match.start()])
        return match[0] if is_commit else HIDDEN

    return _DIGITS.sub(hidden, text)


@lru_cache(maxsize=1)
def _environment_secrets(environment: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(value for name, value in environment if is_secret(name, value))


def _written_out(program: Path) -> Iterator[str]:
    """Yield the values that look like secrets in a run's code: an error's message quotes them."""
    room = _MOST_CODE
    for path in sorted(program.rglob("*.py")):
        if room <= 0 or path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            data = file.read(room)
        room -= len(data)
        for match in secrets_by_context(data, ".py"):
            if literal := _LITERAL.match(data, match.start):
                yield literal[0].decode(errors="replace")
        for line in ASSIGNED.finditer(data.decode(errors="replace")):
            value = line["value"].strip("'\"")
            # A value of words alone stands everywhere.
            if _DIGIT.search(value) and is_secret_by_name(line["name"], value):
                yield value

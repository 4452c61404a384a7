"""Secrets that commands are given by position or by an option of one letter: `curl -u`, `docker
login -p`, a header, a variable before the command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from distrain_nb.secrets.names import is_secret_by_name
from distrain_nb.secrets.prefixes import SecretMatch
from distrain_nb.secrets.randomness import is_plain, looks_random

_KIND = "a secret of a command"
_VALUE = rb"\\{0,7}[\"']?(?P<value>[^\s\"'\\<>]{4,256})"
# A word in lower case without which there is none, and the form; options stand within a line.
_FORMS: tuple[tuple[bytes, re.Pattern[bytes]], ...] = (
    (
        b"-u",
        re.compile(
            rb"\b(?:curl|wget|https?)[ ][^\n]{0,300}?(?<=[ ])(?:-u|-U|--user|--proxy-user)[ =]{0,2}"
            rb"\\{0,7}[\"']?[^\s:\"'\\]{1,64}:(?P<value>[^\s\"'\\]{4,128})"
        ),
    ),
    (b"sshpass", re.compile(rb"\bsshpass[ ]{1,3}-p[ ]{0,3}" + _VALUE)),
    (
        b"mysql",
        re.compile(rb"\bmysql\w{0,12}[ ][^\n]{0,200}?(?<=[ ])-p(?=[^\s-])" + _VALUE),
    ),
    (
        b"login",
        re.compile(
            rb"\b(?:docker|podman|nerdctl|buildah|skopeo|crane|helm|oc|az|argocd)[ ](?:\w+[ ])?"
            rb"login[ ][^\n]{0,200}?(?<=[ ])(?:-p|--password)[ =]{1,2}" + _VALUE
        ),
    ),
)
_TOOL_LOGIN = re.compile(rb"(?<=[\w-][ ])login[ ](?:--?[\w-]+[ =])?" + _VALUE)
_HEADER = re.compile(
    rb"(?:-H|--header)[ =]{0,3}\\{0,7}[\"'](?P<name>[\w-]{2,60})[ ]?:[ ]{0,3}(?:\w{4,8}[ ])?"
    rb"(?P<value>[^\s\"'\\]{6,512})"
)
# `PGPASSWORD=… psql`: set for one command. The name's end is looked for first, which is rare.
_NAME_ENDS = re.compile(rb"(?:PASSWORD|PASSWD|PASS|PWD|TOKEN|SECRET|KEY|PAT|AUTH)=")
_VARIABLE = re.compile(rb"(?:^|(?<=[\s!;&|\"'`]))[A-Z][A-Z0-9_]{1,60}=\Z", re.MULTILINE)
_BEFORE_COMMAND = re.compile(rb"(?P<value>[^\s\"'`,;()\[\]<>|&\\]{6,256})[ ]+[\w./-]")
_HEADERS = re.compile(r"(?:key|token|secret|password|auth|authorization|cookie)$", re.IGNORECASE)
_DRAWN = 20


def command_secrets(data: bytes, lower: bytes) -> Iterator[SecretMatch]:
    """Yield what commands in a text are given that looks like a secret; *lower* is the text in
    lower case."""
    for word, pattern in _FORMS:
        if word in lower:
            for match in pattern.finditer(data):
                if is_written_out(match["value"]):
                    yield SecretMatch(match.start("value"), _KIND)
    if b"login " in lower:
        for match in _TOOL_LOGIN.finditer(data):
            if len(match["value"]) >= _DRAWN and looks_random(_text(match["value"])):
                yield SecretMatch(match.start("value"), _KIND)
    yield from _in_headers(data, lower)
    yield from _in_variables(data)


def _in_headers(data: bytes, lower: bytes) -> Iterator[SecretMatch]:
    if b"-h" in lower or b"--header" in lower:
        for match in _HEADER.finditer(data):
            if _HEADERS.search(_text(match["name"])) and is_written_out(match["value"]):
                yield SecretMatch(match.start("value"), _KIND)


def _in_variables(data: bytes) -> Iterator[SecretMatch]:
    for hit in _NAME_ENDS.finditer(data):
        name = _VARIABLE.search(data, max(hit.start() - 60, 0), hit.end())
        match = _BEFORE_COMMAND.match(data, hit.end()) if name else None
        if name and match and is_written_out(match["value"]):
            variable = _text(name[0][:-1])
            if is_secret_by_name(variable, _text(match["value"])):
                yield SecretMatch(match.start("value"), _KIND)


def is_written_out(value: bytes) -> bool:
    """Return whether a value is one, and not words, a reference to a variable or a file."""
    text = _text(value)
    return not (is_plain(text) or text.startswith(("$", "@", "%", "{")) or "/" in text[:2])


def _text(value: bytes) -> str:
    return value.decode(errors="replace")

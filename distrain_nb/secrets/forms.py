"""Secrets that no prefix gives away: keys, logins in URLs and headers, settings of that name."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from distrain_nb.secrets.prefixes import SecretMatch, has_words_of_manuals, is_made_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAME = (
    rb"(?:password|passwd|passphrase|secret|api[_-]?key|(?:access|secret|private)[_-]?key|"
    rb"(?:auth|access|api|bearer|refresh)[_-]?token)"
)
# In these files values need no quotes.
_SETTINGS = frozenset(
    (".ini", ".cfg", ".conf", ".yaml", ".yml", ".toml", ".properties", ".txt", ".sh", "")
)
_PLAIN = "a secret that is written out"
# A value is looked for first, then the name before it: values are rarer.
_SETTING = re.compile(rb"(?m)[:=][ \t]*([\w+/=.~-]{20,200})[ \t\r]*$")
_QUOTED = re.compile(rb"[:=]\s*[rbu]?[\"']([^\"'\s]{16,200})[\"']")
_NAMED = re.compile(rb"(?i)" + _NAME + rb"[\"']?\s*$")
_LONGEST_NAME = 40
_COMMON = frozenset(
    b"pass passwd password passw0rd pwd pw secret token key user username root admin guest foo bar "
    b"baz tiger test testing letmein mypassword mysecret none null true false auth credentials "
    b"apikey api_key access_token abc abc123 123 1234 12345 123456 my_password userpass".split()
)
_NOWHERE = re.compile(
    rb"(?i)(?:.*\.)?(?:example|test|invalid|localhost)(?:\.(?:com|org|net))?"
    rb"|(?:my)?(?:host|hostname|server|proxy|domain|address|site|foo|bar)(?:\..*)?|[a-z]|127\..*"
)
_LEAST_ENTROPY = 3.5  # bits a character


def unprefixed(data: bytes, suffix: str) -> Iterator[SecretMatch]:
    """What in a text looks like a secret by what stands around it; `suffix` is the file's."""
    lower = data.lower()
    for kind, word, pattern, is_real in _FORMS:
        if word in lower:
            yield from (SecretMatch(m.start(), kind) for m in pattern.finditer(data) if is_real(m))
    for pattern in (_QUOTED, _SETTING) if suffix in _SETTINGS else (_QUOTED,):
        for found in pattern.finditer(data):
            start = max(found.start() - _LONGEST_NAME, 0)
            if _NAMED.search(data, start, found.start()) and _is_random(found[1]):
                yield SecretMatch(found.start(), _PLAIN)


def _always(_: re.Match[bytes]) -> bool:
    return True


def _is_given(found: re.Match[bytes]) -> bool:
    return not is_made_up(found[1])


def _is_password(found: re.Match[bytes]) -> bool:
    """Whether what stands for the password in a URL is one, and leads somewhere."""
    user, password, host = found.groups()
    common = password.lower() in _COMMON or password.lower() == user.lower()
    words = password.isalpha() and (password.islower() or password.isupper()) and len(password) < 9
    return not (has_words_of_manuals(password) or common or words or _NOWHERE.fullmatch(host))


def _is_random(value: bytes) -> bool:
    """Whether a value looks drawn: digits among letters, and no few signs that return."""
    signs = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in signs.values())
    digits = sum(chr(sign).isdigit() for sign in value)
    letters = sum(chr(sign).isalpha() for sign in value)
    mixed = digits >= 3 and letters >= 3
    return mixed and entropy >= _LEAST_ENTROPY and not is_made_up(value)


# Kind, a word in lower case without which there is none, the form, and whether one is real.
_FORMS: tuple[tuple[str, bytes, re.Pattern[bytes], Callable[[re.Match[bytes]], bool]], ...] = (
    (
        "a private key",
        b"private key",
        re.compile(
            rb"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\s|\\r|\\n)+"
            rb"(?:[A-Za-z-]+:[^\n]*\s+)*[A-Za-z0-9+/=]{4}"
        ),
        _always,
    ),
    (
        "a private key",
        b"putty-user-key-file",
        re.compile(rb"(?m)^PuTTY-User-Key-File-\d:"),
        _always,
    ),
    (
        "a Google service account key",
        b"service_account",
        re.compile(rb'"type"\s*:\s*"service_account"'),
        _always,
    ),
    (
        "Google credentials",
        b"authorized_user",
        re.compile(rb'"type"\s*:\s*"authorized_user"'),
        _always,
    ),
    *(
        (
            "AWS credentials",
            word,
            re.compile(rb"(?i)" + word + rb"\W{1,6}([A-Za-z0-9/+]{40,})"),
            _is_given,
        )
        for word in (b"aws_secret_access_key", b"aws_session_token", b"secretaccesskey")
    ),
    (
        "a kubeconfig",
        b"client-key-data",
        re.compile(rb"(?m)^[ \t]*client-key-data\s*:\s*[\"']?[A-Za-z0-9+/=]{20,}"),
        _always,
    ),
    (
        "a kubeconfig",
        b"current-context:",
        re.compile(rb"(?m)^[ \t]*(?:token|password)\s*:\s*[\"']?([\w.+/=-]{8,})[\"']?[ \t\r]*$"),
        _always,
    ),
    (
        "a registry's login",
        b"_auth",
        re.compile(
            rb"(?m)(?:^|:)_auth(?:Token)?\s*=\s*[\"']?([A-Za-z0-9+/=_-]{10,})[\"']?[ \t\r]*$"
        ),
        _is_given,
    ),
    (
        "Docker's logins",
        b'"auth"',
        re.compile(rb'"auth"\s*:\s*"([A-Za-z0-9+/]{8,}={0,2})"'),
        _is_given,
    ),
    (
        "logins",
        b"machine",
        re.compile(rb"(?m)^[ \t]*machine\s+\S+\s+login\s+\S+\s+password\s+\S{3,}"),
        _always,
    ),
    (
        "a password in a URL",
        b"://",
        re.compile(
            rb"://([^\s:@/\"'<>{}$%()\[\]`|,;\\]{0,64}):"
            rb"([^\s:@/\"'<>{}$()\[\]`|,;#?*\\]{3,128})@([A-Za-z0-9][A-Za-z0-9.-]*)"
        ),
        _is_password,
    ),
    (
        "a login in a header",
        b"authorization",
        re.compile(
            rb"(?i)authorization[\"']?\s*[:=,]\s*[\"']?(?:basic|bearer|token)\s+"
            rb"([\w+/=.~-]{20,})"
        ),
        _is_given,
    ),
)

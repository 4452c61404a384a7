"""Secrets that no prefix gives away: keys, logins in URLs and headers, settings of that name."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from distrain_nb.secrets.names import is_secret_name, may_name_a_secret
from distrain_nb.secrets.prefixes import SecretMatch, has_words_of_manuals, is_made_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NAME = (
    rb"(?:password|passwd|passphrase|secret|api[_-]?key|(?:access|secret|private|encryption)[_-]?key|"
    rb"(?:auth|access|api|bearer|refresh|secret)[_-]?token)"
)
# In these files values need no quotes.
_SETTINGS = frozenset(
    (".ini", ".cfg", ".conf", ".yaml", ".yml", ".toml", ".properties", ".txt", ".sh", "")
)
_PLAIN = "a secret that is written out"
# A value is looked for first, then the name before it: values are rarer.
_SETTING = re.compile(rb"(?m)[:=][ \t]*([\w+/=.~-]{20,200})[ \t\r]*$")
_QUOTED = re.compile(rb"[:=]\s*[rbu]?\\*[\"']([^\"'\s]{16,200})[\"']")
_NAMED = re.compile(rb"(?i)" + _NAME + rb"(?:\\*[\"'])?\s*$")
_LONGEST_NAME = 40
_VALUE = re.compile(r"[\w+/=.~-]{16,200}", re.ASCII)
_COMMON = frozenset(
    b"pass passwd password passw0rd pwd pw secret token key user username root admin guest foo bar "
    b"baz tiger test testing letmein mypassword mysecret none null true false auth credentials "
    b"apikey api_key access_token abc abc123 123 1234 12345 123456 my_password userpass".split()
)
_NOWHERE = re.compile(
    rb"(?i)(?:.*\.)?(?:example|test|invalid|localhost)(?:\.(?:com|org|net))?"
    rb"|(?:my)?(?:host|hostname|server|proxy|domain|address|site|foo|bar)(?:\..*)?|[a-z]|127\..*"
)
_REFERENCE = re.compile(rb"(?:[$%]\w+%?)+")  # to a variable
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


def is_secret_by_name(name: str, value: str) -> bool:
    """Whether a variable looks like a secret by its name, and by how its value looks, be it in
    quotes, where the name may mean something else too."""
    value = value.strip("'\"")
    drawn = _VALUE.fullmatch(value) is not None and _is_random(value.encode())
    return is_secret_name(name) or (may_name_a_secret(name) and drawn)


def _always(_: re.Match[bytes]) -> bool:
    return True


def _is_given(found: re.Match[bytes]) -> bool:
    return not is_made_up(found[1])


def _is_password(found: re.Match[bytes]) -> bool:
    """Whether what stands for the password in a URL is one, and leads somewhere."""
    user, password, host = found.groups()
    common = password.lower() in _COMMON or password.lower() == user.lower()
    words = password.isalpha() and (password.islower() or password.isupper()) and len(password) < 9
    harmless = common or words or has_words_of_manuals(password) or _REFERENCE.fullmatch(password)
    return not (harmless or _NOWHERE.fullmatch(host))


def _is_random(value: bytes) -> bool:
    """Whether a value looks drawn: digits among letters, and no few signs that return."""
    signs = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in signs.values())
    digits = sum(chr(sign).isdigit() for sign in value)
    letters = sum(chr(sign).isalpha() for sign in value)
    mixed = digits >= 3 and letters >= 3
    return mixed and entropy >= _LEAST_ENTROPY and not is_made_up(value)


# A text may stand within another, as source and JSON write it: a form finds these escaped
# too, up to three times; without a limit a row of backslashes would take quadratic time.
_ESCAPED = {
    '"': r'\\{0,7}"',
    "<quote>": r"(?:\\{0,7}[\x22'])",
    "<line>": r"(?:^|\\{1,7}[rn])[ \t]*",
    "<end>": r"[ \t\r]*(?:$|\\{1,7}[rn])",
    "<space>": r"(?:\s|\\{1,7}[rnt])+",
}


def _form(text: str) -> re.Pattern[bytes]:
    for name, pattern in _ESCAPED.items():
        text = text.replace(name, pattern)
    return re.compile(text.encode(), re.MULTILINE)


# Kind, a word in lower case without which there is none, the form, and whether one is real.
_FORMS: tuple[tuple[str, bytes, re.Pattern[bytes], Callable[[re.Match[bytes]], bool]], ...] = (
    (
        "a private key",
        b"private key",
        _form(
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----<space>"
            r"(?:[A-Za-z-]+:[^\n\\]*<space>)*[A-Za-z0-9+/=]{4}"
        ),
        _always,
    ),
    (
        "a private key",
        b"putty-user-key-file",
        _form(r"<line>PuTTY-User-Key-File-\d:"),
        _always,
    ),
    (
        "a Google service account key",
        b"service_account",
        _form(r'"type"\s*:\s*"service_account"'),
        _always,
    ),
    (
        "Google credentials",
        b"authorized_user",
        _form(r'"type"\s*:\s*"authorized_user"'),
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
        _form(r"<line>client-key-data\s*:\s*<quote>?[A-Za-z0-9+/=]{20,}"),
        _always,
    ),
    (
        "a kubeconfig",
        b"current-context:",
        _form(r"<line>(?:token|password)\s*:\s*<quote>?([\w.+/=-]{8,})<quote>?<end>"),
        _always,
    ),
    (
        "a registry's login",
        b"_auth",
        _form(r"(?:<line>|:)_auth(?:Token)?\s*=\s*<quote>?([A-Za-z0-9+/=_-]{10,})<quote>?<end>"),
        _is_given,
    ),
    (
        "Docker's logins",
        b'"auth',
        _form(r'"auth"\s*:\s*"([A-Za-z0-9+/]{8,}={0,2})"'),
        _is_given,
    ),
    (
        "logins",
        b"machine",
        _form(
            r"<line>machine<space>[^\s\\]+<space>login<space>[^\s\\]+<space>password<space>\S{3,}"
        ),
        _always,
    ),
    (
        "a password in a URL",
        b"://",
        re.compile(
            rb"://([^\s:@/\"'<>{}()\[\]`|,;\\]{0,64}):"
            rb"([^\s:@/\"'<>{}()\[\]`|,;#?*\\]{3,128})@([A-Za-z0-9][A-Za-z0-9.-]*)"
        ),
        _is_password,
    ),
    (
        "a login in a header",
        b"authorization",
        _form(
            r"(?i)authorization<quote>?\s*[:=,]\s*<quote>?(?:basic|bearer|token)\s+"
            r"([\w+/=.~-]{20,})"
        ),
        _is_given,
    ),
)

"""Secrets that no prefix gives away: keys, logins in URLs and headers, settings of that name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from distrain_nb.secrets.commands import command_secrets, is_written_out
from distrain_nb.secrets.named import named_literals
from distrain_nb.secrets.pairs import paired_literals
from distrain_nb.secrets.prefixes import SecretMatch, has_words_of_manuals, is_made_up
from distrain_nb.secrets.randomness import looks_random

# In these files values need no quotes.
_SETTINGS = frozenset(
    (".ini", ".cfg", ".conf", ".yaml", ".yml", ".toml", ".properties", ".txt", ".sh", "")
)
_COMMON = frozenset(
    b"pass passwd password passw0rd pwd pw secret token key user username root admin guest foo bar "
    b"baz tiger test testing letmein mypassword mysecret none null true false auth credentials "
    b"apikey api_key access_token abc abc123 123 1234 12345 123456 my_password userpass".split()
)
_NOWHERE = re.compile(
    rb"(?i)(?:.*\.)?(?:example|test|invalid|localhost)(?:\.(?:com|org|net))?"
    rb"|(?:my)?(?:host|hostname|server|proxy|domain|address|site|foo|bar)(?:\..*)?|[a-z]|127\..*"
)
_PAIR_ENDS = re.compile(rb"\w[ ]?=[^;=\n\"']{1,190};[ ]?\Z")
_REFERENCE = re.compile(rb"(?:[$%]\w+%?)+")  # to a variable

# A text may stand within another, as source and JSON write it: a form finds these escaped
# too, up to three times; without a limit a row of backslashes would take quadratic time.
_ESCAPED = {
    '"': r'\\{0,7}"',
    "<quote>": r"(?:\\{0,7}[\x22'])",
    "<line>": r"(?:^|\\{1,7}[rn])[ \t]*",
    "<end>": r"[ \t\r]*(?:$|\\{1,7}[rn])",
    "<space>": r"(?:\s|\\{1,7}[rnt])+",
}


def secrets_by_context(data: bytes, suffix: str) -> Iterator[SecretMatch]:
    """Yield what looks like a secret by the text around it; `suffix` is the file's."""
    lower = data.lower()
    for kind, word, pattern, is_real in _FORMS:
        if word in lower:
            yield from (SecretMatch(m.start(), kind) for m in pattern.finditer(data) if is_real(m))
    yield from named_literals(data, settings=suffix in _SETTINGS)
    yield from paired_literals(data, lower)
    yield from command_secrets(data, lower)


def _always(_: re.Match[bytes]) -> bool:
    return True


def _is_given(match: re.Match[bytes]) -> bool:
    return not is_made_up(match[1])


def _is_password(match: re.Match[bytes]) -> bool:
    """Return whether what stands for the password in a URL is one, and leads somewhere."""
    user, password, host = match.groups()
    common = password.lower() in _COMMON or password.lower() == user.lower()
    words = password.isalpha() and (password.islower() or password.isupper()) and len(password) < 9
    harmless = common or words or has_words_of_manuals(password) or _REFERENCE.fullmatch(password)
    return not (harmless or _NOWHERE.fullmatch(host))


def _is_drawn(match: re.Match[bytes]) -> bool:
    return looks_random(match[1].decode(errors="replace").replace("%", "")) and not is_made_up(
        match[1]
    )


def _is_user_token(match: re.Match[bytes]) -> bool:
    return _is_drawn(match) and not _NOWHERE.fullmatch(match[2])


def _is_in_pairs(match: re.Match[bytes]) -> bool:
    before = match.string[max(match.start() - 200, 0) : match.start()]
    is_pair = _PAIR_ENDS.search(before) is not None
    return is_pair and is_written_out(match[1]) and match[1].lower() not in _COMMON


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
            r"-{4,5} ?BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)? ?-{4,5}<space>"
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
            r"(?:<line>|<quote>)machine<space>[^\s\\]+<space>login<space>[^\s\\]+<space>password<space>\S{3,}"
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
    (
        "a token in a URL",
        b"://",
        re.compile(rb"://([\w-]{20,255})@([A-Za-z0-9][A-Za-z0-9.-]*)"),
        _is_user_token,
    ),
    (
        "a key in a URL",
        b"=",
        re.compile(
            rb"[?&;](?i:key|sig|signature|hmac|x-(?:amz|goog)-(?:signature|security-token))="
            rb"([\w%+/.~-]{30,1024}={0,2})"
        ),
        _is_drawn,
    ),
    (
        "a password in a connection string",
        b";",
        re.compile(rb"(?:(?<=;)|(?<=; ))(?i:password|pwd)[ ]?=[ ]?([^;\s\"']{4,128})"),
        _is_in_pairs,
    ),
    (
        "a Kubernetes secret",
        b"secret",
        _form(
            r"(?i)(?<![\w-])kind\s{0,9}:\s{0,9}Secret<end>"
            r"(?:[^\0]{0,600}?)(?:string)?data\s{0,9}:<space>[\w.-]{1,100}\s{0,9}:\s{0,9}"
            r"([A-Za-z0-9+/]{8,}={0,2})"
        ),
        _is_given,
    ),
    (
        "a login in a header",
        b"bearer ",
        re.compile(rb"(?<![\w-])[Bb]earer\s{1,3}([\w+/=.~-]{20,1024})"),
        _is_drawn,
    ),
)

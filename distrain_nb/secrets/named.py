"""Secrets that their name gives away: a literal beside it that isn't plain words, in any syntax.

A name is looked for by its last word, then what joins it to a literal, then the literal: each in a
window of bounded length, so that a text takes time in proportion to its length.

Names that speak of secrets: those of files, and those of variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from distrain_nb.secrets.prefixes import SecretMatch

_ENVIRONMENT = "an environment file"
_GOOGLE, _AWS, _KUBE = "Google credentials", "AWS credentials", "a kubeconfig"
_KEY, _LOGINS, _SECRETS = "a private key", "logins", "a file of secrets"
_STATE = "Terraform's state, which holds secrets"
_VARS = "Terraform's variables, which may hold secrets"
_PIP = "settings of pip, which may hold a login"
_HARMLESS = re.compile(r".*\.(?:example|sample|template|dist|md|rst|py|pyi)")
_FILES = {
    ".env": _ENVIRONMENT,
    ".env[._-]*": _ENVIRONMENT,
    "*.env": _ENVIRONMENT,
    ".envrc": _ENVIRONMENT,
    "*.aws/credentials": _AWS,
    "*.aws/config": "AWS settings, which may hold credentials",
    ".s3cfg": _AWS,
    ".boto": _GOOGLE,
    "*gcloud/application_default_credentials.json": _GOOGLE,
    "*gcloud/credentials.db": _GOOGLE,
    "*gcloud/access_tokens.db": _GOOGLE,
    "client_secret*.json": _GOOGLE,
    "*.kube/config": _KUBE,
    "kubeconfig": _KUBE,
    "*.kubeconfig": _KUBE,
    "*.docker/config.json": "Docker's logins",
    ".dockercfg": "Docker's logins",
    "*huggingface/token": "a Hugging Face token",
    "*huggingface/stored_tokens": "Hugging Face tokens",
    "kaggle.json": "a Kaggle key",
    ".databrickscfg": "a Databricks token",
    "*gh/hosts.yml": "a GitHub token",
    ".vault-token": "a Vault token",
    ".terraformrc": "a Terraform token",
    "*.tfstate": _STATE,
    "*.tfstate.*": _STATE,
    "*.tfvars": _VARS,
    "*.tfvars.*": _VARS,
    "id_rsa": _KEY,
    "id_dsa": _KEY,
    "id_ecdsa": _KEY,
    "id_ed25519": _KEY,
    "*.p12": _KEY,
    "*.pfx": _KEY,
    "*.ppk": _KEY,
    "*.jks": _KEY,
    "*.kdbx": "passwords",
    ".htpasswd": "passwords",
    ".netrc": _LOGINS,
    "_netrc": _LOGINS,
    ".pypirc": _LOGINS,
    "pip.conf": _PIP,
    "pip.ini": _PIP,
    ".git-credentials": _LOGINS,
    ".pgpass": _LOGINS,
    ".my.cnf": _LOGINS,
    "*.snowsql/config": _LOGINS,
    "*.cargo/credentials": _LOGINS,
    "*.cargo/credentials.toml": _LOGINS,
    "*.gem/credentials": _LOGINS,
    "secrets.toml": _SECRETS,
    "secrets.yaml": _SECRETS,
    "secrets.yml": _SECRETS,
    "secrets.json": _SECRETS,
}

_SERVICES = (
    "HF|HUGGING_?FACE(?:_HUB)?|GITHUB|GH|GITLAB|SLACK|DISCORD|TELEGRAM|BOT|NPM|PYPI|VAULT|"
    "DATABRICKS|NEPTUNE|CLEARML|SENTRY|WANDB"
)
_LOGGED_INTO = "DB|DATABASE|MYSQL|PG|POSTGRES|MONGO|REDIS|SMTP|E?MAIL|FTP|SSH|LDAP|ROOT|ADMIN|USER"
_VARIABLE = re.compile(
    r"(?:.*_)?(?:API_?KEY|SECRET_?KEY|PRIVATE_?KEY|SECRET_ACCESS_KEY|SECRET|PASSWORD|PASSWD|"
    r"PASSPHRASE|(?:ACCESS|AUTH|API|BEARER|REFRESH|SESSION|BOT|SECRET)_TOKEN|CONNECTION_STRING|"
    rf"(?:{_LOGGED_INTO})_?PASS|(?<![A-Z])PW)|(?:{_SERVICES})_(?:TOKEN|PAT)|PGPASSWORD|MYSQL_PWD|KAGGLE_KEY",
    re.IGNORECASE,
)
_AMBIGUOUS = re.compile(
    r"(?:.*_)?(?:TOKEN|PAT|PASS|CREDENTIALS?|PWD|"
    r"(?:ACCESS|ENCRYPTION|SIGNING|MASTER|ACCOUNT|STORAGE|SUBSCRIPTION)_?KEY)",
    re.IGNORECASE,
)
# These are more often words: the value has to have digits too.
_LOOSE = re.compile(r"(?:.*_)?(?:AUTH|COOKIE)", re.IGNORECASE)
_NEXT_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def kind_of_file(name: str) -> str | None:
    """Return the kind of secret in files of that name, or path with slashes; None for none."""
    name = name.lower()
    last = name.rpartition("/")[2]
    if _HARMLESS.fullmatch(last):
        return None
    for pattern, kind in _FILES.items():
        if fnmatchcase(name if "/" in pattern else last, pattern):
            return kind
    return None


def is_secret_name(variable: str) -> bool:
    """Return whether a variable of this name usually holds a secret."""
    return _VARIABLE.fullmatch(_in_words(variable)) is not None


def may_name_a_secret(variable: str) -> bool:
    """Return whether a variable of this name may hold a secret: a token of a service, or of a
    text."""
    return _AMBIGUOUS.fullmatch(_in_words(variable)) is not None


def _in_words(variable: str) -> str:
    """Split words of camel case: `dbPassword` becomes `db_Password`."""
    return _NEXT_WORD.sub("_", variable)


_PLAIN = "a secret that is written out"
_LONGEST_NAME = 60
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
_SHORTEST, _SHORT, _MEAN_WORD = 6, 3, 3.5
_ABBREVIATED = 4
_VOWEL = re.compile("(?i)[aeiouy]")
_CONSONANTS = re.compile("(?i)[b-df-hj-np-tv-xz]{6}")


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


def is_secret_by_name(name: str, value: str) -> bool:
    """Return whether the name of a variable says that this value is a secret: always, or where it
    may mean something else too, for a value that looks drawn."""
    if is_secret_name(name):
        return True
    is_loose = _LOOSE.fullmatch(_in_words(name)) and re.search(r"\d", value)
    return bool(is_loose or may_name_a_secret(name)) and looks_random(value.strip("'\""))


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

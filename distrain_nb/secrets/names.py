"""Names that speak of secrets: those of files, and those of variables."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from distrain_nb.secrets.randomness import looks_random

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


def is_secret_by_name(name: str, value: str) -> bool:
    """Return whether the name of a variable says that this value is a secret: always, or where it
    may mean something else too, for a value that looks drawn."""
    if is_secret_name(name):
        return True
    is_loose = _LOOSE.fullmatch(_in_words(name)) and re.search(r"\d", value)
    return bool(is_loose or may_name_a_secret(name)) and looks_random(value.strip("'\""))

"""The guard finds credentials by their names and by their content, and nothing else.

Every secret here is made up when the test runs: none stands in this file.
"""

from __future__ import annotations

import base64
import json
import random
import string
import sysconfig
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from distrain_nb.api import program
from distrain_nb.errors import CheckFailed
from distrain_nb.image import CloudBuild, Recipe, build
from distrain_nb.program import Cell, Notebook, Program, capture
from distrain_nb.secrets import refuse_secret_texts, refuse_secrets
from distrain_nb.secrets.forms import secrets_by_context
from distrain_nb.secrets.names import kind_of_file
from distrain_nb.secrets.prefixes import prefixed

DRAWN = random.Random(7)
WORD = string.ascii_letters + string.digits
HEX = string.digits + "abcdef"
UPPER = string.ascii_uppercase + "234567"
KEY = "PRIVATE" + " KEY"


def some(length: int, signs: str = WORD) -> str:
    """So many signs, digits among them."""
    return "".join(DRAWN.choices(signs, k=length - 2)) + "73"


PASSWORD = some(9)


def jwt() -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": some(12), "iat": 1700000000})
    head = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return ".".join([*head, some(43)])


def uuid() -> str:
    return "-".join(some(n, HEX) for n in (8, 4, 4, 4, 12))


TOKENS = {
    "Hugging Face": "hf" + "_" + some(34),
    "OpenAI project": "sk-" + "proj-" + some(120),
    "OpenAI service": "sk-" + "svcacct-" + some(74),
    "OpenAI old": "sk-" + some(20) + "T3Blbk" + "FJ" + some(20),
    "Anthropic": "sk-" + "ant-api03-" + some(93),
    "OpenRouter": "sk-" + "or-v1-" + some(64, HEX),
    "Groq": "gsk" + "_" + some(52),
    "xAI": "xai" + "-" + some(80),
    "Perplexity": "pplx" + "-" + some(48),
    "Replicate": "r8" + "_" + some(37),
    "NVIDIA": "nvapi" + "-" + some(64),
    "LangSmith": "lsv2_" + "pt_" + some(32, HEX) + "_" + some(10, HEX),
    "Langfuse": "sk-" + "lf-" + uuid(),
    "Pinecone": "pcsk" + "_" + some(64),
    "Prefect": "pnu" + "_" + some(36),
    "Google API": "AI" + "za" + some(35),
    "Google access": "ya" + "29." + some(60),
    "Google client": "GOC" + "SPX-" + some(28),
    "AWS key": "AK" + "IA" + some(16, UPPER).replace("7", "A"),
    "AWS session key": "AS" + "IA" + some(16, UPPER),
    "Azure storage": "Account" + "Key=" + some(86) + "==",
    "Azure client": some(3) + "8" + "Q~" + some(34),
    "Alibaba": "LT" + "AI" + some(20),
    "DigitalOcean": "dop" + "_v1_" + some(64, HEX),
    "Databricks": "da" + "pi" + some(32, HEX),
    "Netlify": "nfp" + "_" + some(40),
    "Supabase": "sbp" + "_" + some(40, HEX),
    "PlanetScale": "pscale" + "_tkn_" + some(43),
    "Vault": "hv" + "s." + some(95),
    "Terraform": some(14) + "." + "atlasv1." + some(67),
    "Pulumi": "pul" + "-" + some(40, HEX),
    "Doppler": "dp." + "pt." + some(43),
    "age": "AGE-SECRET-" + "KEY-1" + some(58, string.ascii_uppercase + string.digits),
    "Tailscale": "tskey-" + "auth-" + some(17) + "-" + some(32),
    "GitHub": "gh" + "p_" + some(36),
    "GitHub app": "gh" + "s_" + some(36),
    "GitHub fine": "github" + "_pat_" + some(22) + "_" + some(59),
    "GitLab": "gl" + "pat-" + some(20),
    "GitLab runner": "gl" + "rt-" + some(20),
    "npm": "npm" + "_" + some(36),
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmc" + some(90),
    "RubyGems": "rubygems" + "_" + some(48, HEX),
    "Docker Hub": "dckr" + "_pat_" + some(27),
    "CircleCI": "CCI" + "PAT_" + some(22) + "_" + some(40, HEX),
    "SonarQube": "sq" + "p_" + some(40, HEX),
    "Sentry": "sntr" + "yu_" + some(64, HEX),
    "New Relic": "NR" + "AK-" + some(27, string.ascii_uppercase + string.digits),
    "Grafana": "gl" + "sa_" + some(32) + "_" + some(8, HEX),
    "Slack bot": "xo" + "xb-" + some(12, string.digits) + "-" + some(24),
    "Slack app": "xa" + "pp-1-" + some(11) + "-" + some(64, HEX),
    "Slack hook": "https://hooks."
    + "slack.com/services/T"
    + some(9)
    + "/B"
    + some(9)
    + "/"
    + some(24),
    "Discord hook": "https://discord"
    + ".com/api/webhooks/"
    + some(18, string.digits)
    + "/"
    + some(68),
    "Telegram": some(10, string.digits) + ":" + "AA" + some(33),
    "Twilio": "S" + "K" + some(32, HEX),
    "SendGrid": "S" + "G." + some(22) + "." + some(43),
    "Mailgun": "ke" + "y-" + some(32, HEX),
    "Mailchimp": some(32, HEX) + "-" + "us21",
    "Stripe": "sk" + "_live_" + some(24),
    "Stripe test": "rk" + "_test_" + some(24),
    "Square": "sq0" + "csp-" + some(43),
    "Shopify": "shp" + "at_" + some(32, HEX),
    "Linear": "lin" + "_api_" + some(40),
    "Notion": "nt" + "n_" + some(46),
    "Airtable": "pa" + "t" + some(14) + "." + some(64, HEX),
    "Postman": "PM" + "AK-" + some(24, HEX) + "-" + some(34, HEX),
    "Figma": "fig" + "d_" + some(40),
    "JWT": jwt(),
}
PASSWORD = some(10)
LOGINS = {
    "database": f"DATABASE = 'postgresql://trainer:{PASSWORD}@db.internal:5432/runs'",
    "queue": f"redis://:{PASSWORD}@cache.corp.net:6379/0",
    "index": f"--extra-index-url https://ci:{PASSWORD}@pypi.corp.net/simple",
    "service account": '{\n "type": "service' + '_account", "project_id": "p"}',
    "AWS secret": f"AWS_SECRET_ACCESS_KEY = '{some(40)}'",
    "AWS in JSON": '{"SecretAccess' + f'Key": "{some(40)}"}}',
    "a PEM": f"-----BEGIN {KEY}-----\nMIIB",
    "a PEM with CRLF": f"-----BEGIN EC {KEY}-----\r\nMIIB",
    "a PEM in a JSON": f'"-----BEGIN RSA {KEY}-----\\nMIIB"',
    "PGP": f"-----BEGIN PGP {KEY} BLOCK-----\n\nlQOYBGV",
    "an old PEM": f"-----BEGIN RSA {KEY}-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: X\n\nMIIB",
    "kubeconfig": "users:\n- user:\n    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJ",
    "npmrc": f"//registry.corp.net/:_authToken={some(30)}",
    "Docker": '{"auths": {"x": {"auth": "YWRhOmNvcnJlY3Q="}}}',
    "netrc": f"machine api.corp.net login ada password {PASSWORD}",
    "header": f'headers = {{"Authorization": "Bearer {some(40)}"}}',
    "setting": f'api_key = "{some(32)}"',
    "dictionary": f"{{'client_secret': '{some(32)}'}}",
    "$ in a password": f"postgres://u:my$ecret{PASSWORD}@db.corp/x",
    "an address as user": f"postgres://ada%40corp.net:{PASSWORD}@db.corp/x",
    "a variable as user": f"postgres://$USER:{PASSWORD}@db.corp/x",
}
VALUE = some(32)
NAMES = (
    ".env", "conf/.env.production", "prod.env", ".envrc", ".aws/credentials", ".s3cfg", ".boto",
    "home/.config/gcloud/application_default_credentials.json", "kubeconfig", ".kube/config",
    ".docker/config.json", "keys/id_ed25519", "key.p12", ".netrc", ".pypirc", "pip.conf",
    "kaggle.json", ".git-credentials", ".pgpass", ".htpasswd", ".databrickscfg", "secrets.toml",
    ".streamlit/secrets.toml", "secrets.yaml", "prod.tfvars", ".huggingface/token",
    ".ENV", "Prod.Env", ".env-prod", "pip.ini", "terraform.tfstate.backup", "prod.tfvars.json",
)  # fmt: skip
HARMLESS = {
    ".env.example": "API_KEY=",
    "main.py": "import os\nkey = os.environ['AWS_SECRET_ACCESS_KEY']\ntoken = 'x'\n",
    "env.py": "print('.env')",
    "tokens.txt": "the cat sat",
    "public.pem": "-----BEGIN PUBLIC KEY-----\nMIIB",
    "certificate.pem": "-----BEGIN CERTIFICATE-----\nMIIB",
    "config": "model: bert",
    "training.yaml": "token: [CLS]\nlr: 3",
    "credentials.py": "def find(): ...",
    "guard.py": f'PATTERN = "-----BEGIN {KEY}-----"',
    "outputs.py": "class Outputs:\n    token: Optional[torch.LongTensor] = None\n",
    "manual.md": "postgresql://scott:tiger@localhost/test and https://user:password@host/",
    "variables.sh": "postgres://ada:$PASSWORD@db.corp/x, ://%USER%:%WORD%@db.corp/x, ://%s:%s@db/",
    "aws.md": "AKIAIOSFODNN7" + "EXAMPLE",
    "placeholder.py": 'login(token="hf_'
    + "x" * 34
    + '")\nkey = "sk-'
    + "your-key-goes-here" * 3
    + '"',
    "digest.json": '{"key": "' + "ab12" * 16 + '", "token_type": "bearer"}',
    "tokenizer.py": "pad_token = '<|endoftext|>'\nsecret_key_name = 'kms-key-of-the-training-job'",
}


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def seen(folder: Path, *allowed: str) -> list[tuple[str, str]]:
    """Where the guard sees something, and what it says."""
    try:
        refuse_secrets(folder, allowed=allowed)
    except CheckFailed as refused:
        return [(finding.where, finding.message) for finding in refused.findings]
    return []


def test_there_are_sixty_kinds() -> None:
    assert len(TOKENS) >= 60
    assert len(set(TOKENS.values())) == len(TOKENS)


@pytest.mark.parametrize("kind", [*TOKENS, *LOGINS])
def test_a_secret_is_refused_with_its_line_unless_its_file_is_named(
    tmp_path: Path, kind: str
) -> None:
    text = LOGINS.get(kind) or f'x = "{TOKENS[kind]}"'
    write(tmp_path, "conf/settings.py", f"import os\n\n{text}\n")
    write(tmp_path, "main.py", "print(1)")
    ((where, message),) = seen(tmp_path)
    assert where.startswith("conf/settings.py, line ")
    assert int(where.rpartition(" ")[2]) >= 3
    assert "--allow-secret conf/settings.py." in message
    assert TOKENS.get(kind, PASSWORD) not in message
    assert not seen(tmp_path, "conf/settings.py")


ESCAPED = {
    "source": lambda text: f"x = {text!r}",
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps({"source": [json.dumps({"x": text})]}),
}


@pytest.mark.parametrize("escaped", ESCAPED)
@pytest.mark.parametrize("kind", [*TOKENS, *LOGINS])
def test_a_secret_in_a_text_within_a_text(tmp_path: Path, kind: str, escaped: str) -> None:
    """What stands before it is the last sign of an escaped line break: a letter."""
    text = f"first\n{LOGINS.get(kind) or TOKENS[kind]}\nlast"
    write(tmp_path, "texts.py", ESCAPED[escaped](text))
    assert len(seen(tmp_path)) == 1


def test_a_row_of_backslashes_takes_time_by_its_length() -> None:
    """Ten times the length takes ten times the time of this thread, not a hundred times."""

    def seconds(length: int) -> float:
        begin = time.thread_time()
        assert not [*secrets_by_context(b"\\" * length + b'"auth machine', ".json")]
        return time.thread_time() - begin

    assert seconds(200_000) < 50 * min(seconds(20_000) for _ in range(3))


BREAKS = ("\\n", "\\t", "\\r", "\\0", "\\033", "\\x1b", "\\u001b", "token%3D")
COLOURS = ("\x1b[m", "\x1b[31m", "\x1b[38;5;208m", "\\u001b[1;31m")


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("before", [*BREAKS, *COLOURS])
def test_a_token_behind_an_escaped_sign(kind: str, before: str) -> None:
    assert [*prefixed(f"a{before}{TOKENS[kind]}".encode())]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "A=1")
    ((where, message),) = seen(tmp_path)
    assert where == name
    assert f"--allow-secret {name}." in message
    assert not seen(tmp_path, name)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_harmless_goes_through(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, HARMLESS[name])
    assert not seen(tmp_path)


def test_all_of_them_are_named_at_once(tmp_path: Path) -> None:
    for name in NAMES:
        write(tmp_path, name, "A=1")
    for number, text in enumerate([*TOKENS.values(), *LOGINS.values()]):
        write(tmp_path, f"{number}.txt", text)
    for name, text in HARMLESS.items():
        write(tmp_path, name, text)
    assert len(seen(tmp_path)) == len(NAMES) + len(TOKENS) + len(LOGINS)


def test_a_secret_far_down_in_a_file(tmp_path: Path) -> None:
    write(tmp_path, "long.py", "x = 1\n" * 1_000_000 + TOKENS["GitHub"])
    ((where, _),) = seen(tmp_path)
    assert where == "long.py, line 1000001"


def test_a_secret_in_the_cell_has_the_place_that_the_notebook_shows(tmp_path: Path) -> None:
    program(f"import os\nprint(os.getcwd())\nlogin = '{TOKENS['Hugging Face']}'").write(tmp_path)
    ((where, message),) = seen(tmp_path)
    assert where == "submit(), line 3"
    assert "a Hugging Face token" in message
    assert not seen(tmp_path, "main.py")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("login", TOKENS["GitHub"]),
        ("login", "first\n" + TOKENS["GitHub"]),
        ("login", " " * 300 + TOKENS["npm"]),
        ("db_password", "hunter2"),
        ("dbPassword", "hunter2"),
        ("token", VALUE),
    ],
)
def test_a_secret_among_the_values_that_are_carried(tmp_path: Path, name: str, value: str) -> None:
    carry(tmp_path, name, value)
    assert [where for where, _ in seen(tmp_path)] == [name]
    assert not seen(tmp_path, name)


def carry(folder: Path, name: str, value: str) -> Program:
    """Write a program that carries the value under that name from a notebook, and other values."""
    values = {"other": "harmless" * 60, name: value, "password_length": 12}
    notebook = Notebook(values, (), folder)
    cell = Cell("In[1]", f"print({name}, other, password_length)")
    made = capture(cell, 1, notebook, limit=1 << 20)
    made.write(folder)
    return made


def test_what_a_dry_run_prints_of_a_secret(tmp_path: Path) -> None:
    told = carry(tmp_path, "db_password", "hunter2").describe()
    assert "db_password: str, = ***" in told
    assert "\ndb_password = ***\n" in told
    assert "\npassword_length = 12\n" in told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "WANDB_API_KEY", "DB_PASSWORD", "my_secret",
        "SECRET_TOKEN", "GITHUB_PAT", "DB_PASS", "dbPassword", "openaiAPIKey",
    ],
)  # fmt: skip
def test_a_secret_in_a_variable(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        refuse_secrets(tmp_path, {name: "hunter2", "LR": "0.1"})
    assert [finding.where for finding in caught.value.findings] == [name]
    assert "hunter2" not in str(caught.value)
    refuse_secrets(tmp_path, {name: "hunter2"}, allowed=[name])
    refuse_secrets(tmp_path, {name: "secret://hunter2"})


def test_a_secret_in_a_variable_with_a_harmless_name(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="MIRROR: looks like a GitHub token"):
        refuse_secrets(tmp_path, {"MIRROR": TOKENS["GitHub"]})


@pytest.mark.parametrize(
    "name", ["TOKENIZERS_PARALLELISM", "KEY", "PASSWORDLESS", "MONKEY", "PAD_TOKEN"]
)
def test_a_harmless_variable(tmp_path: Path, name: str) -> None:
    refuse_secrets(tmp_path, {name: "1"})


@pytest.mark.parametrize("name", ["TOKEN", "ACCESS_KEY", "ENCRYPTION_KEY", "RUN_PAT", "jobToken"])
def test_a_name_that_may_mean_something_else_counts_if_its_value_looks_drawn(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(CheckFailed, match=f"{name}: looks like a secret"):
        refuse_secrets(tmp_path, {name: VALUE})
    for harmless in ("<pad>", "<|reserved_special_token_250|>", "512", "alias/key-of-training"):
        refuse_secrets(tmp_path, {name: harmless})


@pytest.mark.parametrize("made", ["object", "string", "index", "numpy", "bytes"])
@pytest.mark.parametrize("length", [34, 45, 62])  # of which a pickle's byte is a sign or a letter
def test_a_token_among_the_texts_of_a_table_or_an_array(
    tmp_path: Path, made: str, length: int
) -> None:
    token = "hf" + "_" + some(length)
    texts = ["a" * 40, token, "b" * 40]
    values = {
        "object": lambda: pd.DataFrame({"c": texts}, dtype=object),
        "string": lambda: pd.DataFrame({"c": texts}, dtype="string"),
        "index": lambda: pd.Series([1, 2, 3], index=texts),
        "numpy": lambda: np.array(texts),
        "bytes": lambda: np.array([text.encode() for text in texts]),
    }
    notebook = Notebook({"table": values[made]()}, (), tmp_path)
    capture(Cell("In[1]", "print(table)"), 1, notebook, limit=1 << 20).write(tmp_path)
    ((_, message),) = seen(tmp_path)
    assert "a Hugging Face token" in message


PLAIN_TEXTS = {
    "require": ["torch>=2", "git+https://github.com/a/b@v1.2.3", "git+ssh://git@github.com/a/b"],
    "metric": ["loss=loss: ([0-9.]+)"],
    "name": ["night-run_7"],
    "nfs": ["10.0.0.2:/share:data"],
    "layout": ["--workers 2 --gpu H100:8"],
}


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("require", f"git+https://ada:{PASSWORD}@git.corp.net/a/b.git"),
        ("require", f"--extra-index-url=https://ci:{PASSWORD}@pypi.corp.net/simple"),
        ("layout", f"--mpi-options='-x API_KEY={VALUE}' -n 2"),
        ("layout", f"--mpi-options='--mca x http://ada:{PASSWORD}@gate.corp.net'"),
        ("nfs", f"smb://ada:{PASSWORD}@files.corp.net:/share:data"),
        ("metric", f"token={TOKENS['GitHub']}"),
        ("name", TOKENS["GitHub"]),
        ("args", f"--password={VALUE}"),
        ("args", f"--db-password {VALUE}"),
    ],
)
def test_a_secret_in_an_option(option: str, text: str) -> None:
    refuse_secret_texts(PLAIN_TEXTS)
    with pytest.raises(CheckFailed) as caught:
        refuse_secret_texts({**PLAIN_TEXTS, option: text.split("\n")})
    (finding,) = caught.value.findings
    assert finding.where == f"--{option}" and f"--allow-secret {option}." in finding.message
    refuse_secret_texts({**PLAIN_TEXTS, option: text.split("\n")}, allowed=[option])


@pytest.mark.slow
@pytest.mark.parametrize("builder", ["append", "docker", CloudBuild("project", "bucket")], ids=str)
@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("requirements", f"a @ git+https://ada:{PASSWORD}@git.corp.net/a/b.git"),
        ("requirements", f"--extra-index-url=https://ada:{PASSWORD}@pypi.corp.net/simple"),
        ("run", f"curl https://ada:{PASSWORD}@get.corp.net/install | sh"),
    ],
)
def test_a_login_in_what_an_image_is_built_of(
    option: str, text: str, builder: str | CloudBuild
) -> None:
    """Whichever builder it is, before anything is read or sent."""
    recipe = Recipe("localhost:1/base", "localhost:1/made", **{option: (text,)})  # type: ignore[arg-type]
    with pytest.raises(CheckFailed, match="looks like ") as caught:
        build(program("print(1)"), recipe, builder)
    assert PASSWORD not in str(caught.value)


@pytest.mark.slow  # reads 2,000 files
def test_installed_packages_raise_few_alarms() -> None:
    """Sample their texts: of 42,790 files 36 raise an alarm, so 8 of 2,000 are no chance."""
    files = sorted(
        path
        for path in Path(sysconfig.get_path("purelib")).rglob("*.*")
        if path.suffix in (".py", ".json", ".yaml", ".toml", ".txt", ".md", ".cfg", ".js")
    )
    sample = random.Random(1).sample(files, min(2000, len(files)))
    alarms = [path for path in sample if alarm(path)]
    assert len(alarms) < len(sample) / 250, alarms


def alarm(path: Path) -> bool:
    data = path.read_bytes()[: 1 << 20]
    by_content = (*prefixed(data), *secrets_by_context(data, path.suffix))
    return bool(by_content or kind_of_file(path.name))

"""What leaves this machine has no secrets: one guard for files, notices, webhooks and trackers.

Every secret here is drawn when the test runs: none stands in this file.
"""

from __future__ import annotations

import json
import random
import string
from dataclasses import dataclass
from pathlib import Path

import pytest

from distrain_nb.secrets import Guard, is_secret, refuse_secret_texts
from distrain_nb.secrets.forms import secrets_by_context
from distrain_nb.secrets.prefixes import prefixed
from tests.harmless import PARAMETERS, TEXTS

DRAWN = random.Random(49)
WORD, HEX = string.ascii_letters + string.digits, string.digits + "abcdef"


def some(length: int, signs: str = WORD) -> str:
    """So many signs, letters and digits among them."""
    return "k3" + "".join(DRAWN.choices(signs, k=length - 4)) + "7q"


def hexadecimal(length: int) -> str:
    return "a1" + "".join(DRAWN.choices(HEX, k=length - 4)) + "9f"


# As code, commands and settings have them.
IN_CODE = {
    "a purpose in the key": 'SERVICE_API_KEY = "secret_lambda_{hex32}.{word32}"',
    "a test key": 'API_KEY = "sk-test-{word32}"',
    "several names": 'user, password = "ada", "{word14}"',
    "several names in brackets": '(user, password) = ("ada", "{word14}")',
    "three names": 'host, user, db_password = HOST, "ada", "{word14}"',
    "a login's pair": 'requests.get(url, auth=("bob", "{word14}"))',
    "a login's object": 'auth = HTTPBasicAuth("bob", "{word14}")',
    "a login's call": 'server.login("bob", "{word14}")',
    "a default": 'password = os.environ.get("P") or "{word14}"',
    "a default of a variable": 'connect(os.getenv("DB_PASSWORD") or "{word14}")',
    "a default behind else": 'api_key = key if key else "{word32}"',
    "curl -u": "!curl -u admin:{word16} https://api.corp.net/v1",
    "curl --user": "!curl -s --user admin:{word16} https://api.corp.net/v1",
    "a header": "!curl -H 'X-API-Key: {word32}' https://api.corp.net",
    "a header with quotes": '!curl --header "PRIVATE-TOKEN: {word20}" https://git.corp.net',
    "docker login": "!docker login -u bob -p {word16} reg.corp.net",
    "podman login": "!podman login --password {word16} reg.corp.net",
    "sshpass": "!sshpass -p {word12} ssh root@host",
    "mysql": "!mysql -uroot -p{word12} prod",
    "a tool's login": "!wandb login {hex40}",
    "before a command": "!PGPASSWORD={word16} psql -h db",
    "ADO.NET": 'dsn = "Server=db;Database=p;User Id=app;Password={word14};"',
    "ODBC": 'dsn = "Driver=ODBC;Server=db;Uid=app;Pwd={word14}"',
    "Azure's signature": 'u = "https://acc.blob.core.windows.net/c?sp=rl&sig={word43}%3D"',
    "a presigned URL": 'u = "https://b.s3.amazonaws.com/k?X-Amz-Signature={hex64}"',
    "a key in a URL": 'u = "https://maps.corp.net/v1?key={word39}"',
    "a token in a URL": 'u = "https://{hex40}@git.corp.net/a/b.git"',
    "pw": 'pw = "{word12}"',
    "account_key": 'account_key = "{word40}"',
    "auth": 'auth = "{word32}"',
    "a cookie": 'SESSION_COOKIE = "{word40}"',
    "Fireworks": 'x = "fw_{word24}"',
    "Jina": 'x = "jina_{word60}"',
    "Google's refresh token": 'x = "1//0{word60}"',
    "SSH2": 'x = "---- BEGIN SSH2 ENCRYPTED PRIVATE ' + 'KEY ----\\n{word64}"',
    "netrc in a text": 'x = "machine api.corp.net login ada password {word14}"',
    "a secret of Kubernetes": 'x = "kind: Secret\\ndata:\\n  password: {word24}=="',
}
# As an error's message, a log, a note or a name has them.
IN_PROSE = {
    "beside its name": "can't connect with password={word14} to db",
    "a sentence": "rank 0 failed: ValueError: api_key: {word32} was refused",
    "a bearer": "the server refused Bearer {word40}",
    "a login in a URL": "no route to https://ada:{word14}@db.corp.net/x",
    "Slack": "could not post with xoxb-{digits12}-{word24}",
    "40 digits": "login failed for {hex40}",
    "an option": "started with --db-password={word14} -n 2",
}


def filled(text: str) -> tuple[str, str]:
    """Return the text with a drawn value in each place, and the last of them."""
    value = ""
    while "{" in text:
        before, _, rest = text.partition("{")
        place, _, after = rest.partition("}")
        kind, length = place.rstrip(string.digits), int(place.lstrip(string.ascii_letters))
        value = hexadecimal(length) if kind == "hex" else some(length)
        if kind == "digits":
            value = "".join(DRAWN.choices(string.digits, k=length))
        text = f"{before}{value}{after}"
    return text, value


@pytest.mark.parametrize("form", IN_CODE)
def test_a_secret_in_code_is_seen_and_does_not_leave(form: str) -> None:
    missed = []
    for _ in range(40):
        text, value = filled(IN_CODE[form])
        data = f"import os\n{text}\n".encode()
        in_notebook = json.dumps({"source": [f"{text}\n"]}).encode()
        for where, suffix in ((data, ".py"), (in_notebook, ".ipynb")):
            if not [*prefixed(where), *secrets_by_context(where, suffix)]:
                missed.append((suffix, text))
        if value in Guard().text(text):
            missed.append(("leaves", text))
    assert not missed


@pytest.mark.parametrize("form", IN_PROSE)
def test_a_secret_in_prose_does_not_leave(form: str) -> None:
    missed = []
    for _ in range(40):
        text, value = filled(IN_PROSE[form])
        missed += [shown for shown in (Guard().text(text), Guard().line(text)) if value in shown]
    assert not missed


def test_of_320_harmless_texts_one_raises_an_alarm_at_most() -> None:
    assert len({*TEXTS, *PARAMETERS}) >= 320
    refused, hidden = set(), set()
    for text in (*TEXTS, *PARAMETERS):
        notebook = json.dumps({"source": [f"{text}\n"]})
        for data, suffix in ((text, ".py"), (text, ".txt"), (notebook, ".ipynb")):
            if [*prefixed(data.encode()), *secrets_by_context(data.encode(), suffix)]:
                refused.add(text)
        if Guard().line(text) != text:
            hidden.add(text)
    assert len(refused) <= 1, refused
    assert len(hidden) <= 1, hidden


def test_harmless_parameters_are_not_refused() -> None:
    refuse_secret_texts({"param": PARAMETERS, "args": PARAMETERS})
    assert not [text for text in PARAMETERS if is_secret(*text.split("=", 1))]


def test_values_of_the_environment_and_of_the_code_do_not_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_environment, in_code, in_a_package = some(24), some(9), some(9)
    monkeypatch.setenv("MY_API_KEY", in_environment)
    (tmp_path / "package").mkdir()
    for file, value in (("main.py", in_code), ("package/settings.py", in_a_package)):
        (tmp_path / file).write_text(f"db_password = '{value}'\n", encoding="utf-8")
    guard = Guard.of_run(tmp_path)
    for value in (in_environment, in_code, in_a_package):
        assert guard.text(f"ValueError: bad value {value!r}, given twice") == (
            "ValueError: bad value '***', given twice"
        )
    assert guard.line("ValueError: bad value 'db'") == "ValueError: bad value 'db'"


@dataclass(frozen=True)
class Noted:
    name: str
    tags: tuple[str, ...]
    size: int


def test_records_tables_and_html() -> None:
    token, password = "gh" + "p_" + some(36), some(12)
    guard = Guard()
    noted = guard.fields(Noted(f"run {token}", ("night", token), 3))
    assert noted == Noted("run ***", ("night", "***"), 3)
    assert guard.texts({"api_key": password, "lr": "0.1", f"m {token}": "1"}) == {
        "api_key": "***", "lr": "0.1", "m ***": "1",
    }  # fmt: skip
    assert guard.by_name({"r": {"api_key": password, "units": 64}}) == {
        "r": {"api_key": "***", "units": 64}
    }
    shown = guard.html(f'<p data-tag="m {token}" class="a">loss &lt; 1 {token}</p><b>x &amp; y</b>')
    assert shown == '<p data-tag="m ***" class="a">loss &lt; 1 ***</p><b>x &amp; y</b>'

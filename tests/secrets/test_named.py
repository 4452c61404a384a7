"""A name that speaks of a secret beside a drawn value is enough, in every syntax, for every shape.

Values are drawn when the test runs, by a fixed seed: none stands in this file.
"""

from __future__ import annotations

import base64
import json
import random
import string
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from distrain_nb.secrets.forms import secrets_by_context
from distrain_nb.secrets.names import is_secret_by_name

if TYPE_CHECKING:
    from collections.abc import Callable

DRAWS = 500
LETTERS = string.ascii_letters
WORD = LETTERS + string.digits


def of(signs: str, length: int) -> Callable[[random.Random], str]:
    return lambda drawn: "".join(drawn.choices(signs, k=length))


SHAPES: dict[str, Callable[[random.Random], str]] = {
    "hexadecimal": of("0123456789abcdef", 32),
    "letters and digits": of(WORD, 24),
    "capitals and digits": of(string.ascii_uppercase + "234567", 20),
    "small letters": of(string.ascii_lowercase, 32),
    "a password": of(WORD + "!#$%*+@^~", 16),
    "base64": lambda drawn: base64.b64encode(drawn.randbytes(30)).decode(),
    "base64 of URLs": lambda drawn: base64.urlsafe_b64encode(drawn.randbytes(32)).decode(),
    "a UUID": lambda drawn: str(uuid.UUID(int=drawn.getrandbits(128), version=4)),
}
SYNTAXES: dict[str, Callable[[str], str]] = {
    "assignment": lambda value: f'SERVICE_API_KEY = "{value}"',
    "environment": lambda value: f'os.environ["X_API_KEY"] = "{value}"',
    "item": lambda value: f"conf['api_key'] = '{value}'",
    "annotation": lambda value: f'api_key: str | None = "{value}"',
    "dictionary": lambda value: f'{{"clientSecret": "{value}"}}',
    "keyword": lambda value: f'connect(user="ada", password="{value}")',
    "login": lambda value: f'wandb.login(key="{value}")',
    "default": lambda value: f'os.environ.setdefault("DB_PASSWORD", "{value}")',
    "magic": lambda value: f"%env X_API_KEY={value}",
    "option": lambda value: f"!train --password={value} --epochs 3",
    "JSON in a notebook": lambda value: json.dumps(f'api_key = "{value}"\n'),
    "export": lambda value: f"!export AUTH_TOKEN={value}",
}


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_none_of_500_drawn_values_of_8_shapes_is_missed(syntax: str) -> None:
    drawn = random.Random(32)
    texts = [
        (shape, SYNTAXES[syntax](draw(drawn)))
        for shape, draw in SHAPES.items()
        for _ in range(DRAWS)
    ]
    missed = [
        (shape, text) for shape, text in texts if not [*secrets_by_context(text.encode(), ".py")]
    ]
    assert not missed


@pytest.mark.parametrize("shape", SHAPES)
def test_a_name_that_may_mean_something_else_beside_a_drawn_value(shape: str) -> None:
    drawn = random.Random(32)
    values = [SHAPES[shape](drawn) for _ in range(DRAWS)]
    missed = [value for value in values if not is_secret_by_name("token", value)]
    assert len(missed) <= (DRAWS if shape in ("small letters", "a password") else 20)


MORE = {
    "service": '{{"name": "X_API_KEY", "value": "{}"}}',
    "tuple": 'os.putenv("X_API_KEY", "{}")',
    "wrapped": 'api_key = SecretStr("{}")',
    "next line": 'api_key = (\n    "{}"\n)',
    "setter": 'openai.set_api_key("{}")',
    "bytes": "PASSWORD = b'{}'",
    "query": 'get("https://host.org/?api_key={}&x=1")',
    "spaced option": "!train --api-key {}",
    "env with spaces": "%env X_API_KEY = {}",
    "set_env": "%set_env DB_PASSWORD {}",
    "comparison": 'if password == "{}":',
    "numbered": 'API_KEY_2 = "{}"',
    "argument": 'parser.add_argument("--api-key", default="{}")',
    "source in JSON": '"os.environ[\\"X_API_KEY\\"] = \\"{}\\"\\n"',
    "camel": 'dbPassword="{}"',
}


@pytest.mark.parametrize("name", ["token", "my_token", "encryption_key", "accessKey", "JOB_TOKEN"])
def test_an_ambiguous_name_in_a_text(name: str) -> None:
    drawn = random.Random(32)
    for shape in ("hexadecimal", "letters and digits", "base64", "a UUID"):
        assert [*secrets_by_context(f'{name} = "{SHAPES[shape](drawn)}"'.encode(), ".py")], shape


@pytest.mark.parametrize("form", MORE)
def test_other_syntaxes(form: str) -> None:
    drawn = random.Random(32)
    for draw in SHAPES.values():
        text = MORE[form].replace("{{", "{").replace("}}", "}").replace("{}", draw(drawn))
        assert [*secrets_by_context(text.encode(), ".py")], text


HARMLESS = """\
password = "password"
os.environ["API_KEY"] = "your-api-key-goes-here"
api_key = os.environ["X_API_KEY_2"]
api_key = config.get("prod_api_key_2")
parser.add_argument("--password", help="the password of 3 words")
KEYS = ["PASSWORD", "user2Name1", "SECRET", "oauth2Client"]
secret_name = "prod/app1/db2"
client_secret: str = "clientSecret"
password: Optional[str] = None
token = tokenizer.pad_token = "<|reserved_special_token_250|>"
f(api_key="{{secrets/scope1/key2}}", password=f"{user1}{pw2}")
secret="projects/p1/secrets/x/versions/1"
login("ada99@example.com")
KEK_PASSPHRASE = "default-kek-passphrase-for-development-only"
auth_password = "s\\xc9\\x99cr\\xc9\\x99t"
get_secret("my-secret-v2")
"NextToken": "AAAAKom85qGh1xEnpsmYMg3R7oXcAr2x0000"
AWS::X::ApiKey": "b899a0d240b53d9d"
!train --password $PASSWORD --api-key ${API_KEY} --token-file x1y2z3w4
%env X_API_KEY={key}
"""


@pytest.mark.parametrize("line", HARMLESS.splitlines())
def test_words_beside_a_name_are_no_secrets(line: str) -> None:
    assert not [*secrets_by_context(line.encode(), ".py")]


def test_the_notebooks_of_the_project_raise_no_alarm() -> None:
    notebooks = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
    assert notebooks
    alarms = [path for path in notebooks if [*secrets_by_context(path.read_bytes(), ".ipynb")]]
    assert not alarms


ROWS = (
    "password",
    "password=",
    'password="',
    "password ",
    "key\\n",
    "--token ",
    "login(",
    "api_key: ",
)


@pytest.mark.parametrize("part", ROWS)
def test_a_row_of_names_takes_time_in_proportion(part: str) -> None:
    text = (part * 400_000)[:400_000].encode()
    begin = time.thread_time()
    list(secrets_by_context(text, ".txt"))
    assert time.thread_time() - begin < 8.0

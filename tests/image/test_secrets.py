"""The guard finds credentials by their names and by their content, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from distrain_nb.errors import CheckFailed
from distrain_nb.image.secrets import refuse_secrets

if TYPE_CHECKING:
    from pathlib import Path

KEY = "PRIVATE" + " KEY"
SECRETS = {
    ".env": "A=1",
    "conf/.env.production": "A=1",
    ".aws/credentials": "[default]",
    "home/.config/gcloud/application_default_credentials.json": "{}",
    "kubeconfig": "",
    ".kube/config": "",
    ".docker/config.json": "{}",
    "keys/id_ed25519": "",
    ".netrc": "",
    ".pypirc": "",
    "x.pem": f"-----BEGIN {KEY}-----\nMIIB",
    "y.txt": f"-----BEGIN EC {KEY}-----\r\nMIIB",
    "z.asc": f"-----BEGIN PGP {KEY} BLOCK-----\n\nlQOYBGV",
    "account.json": '{\n "type": "service_account", "project_id": "p"}',
    "settings.py": "AWS_SECRET_ACCESS_KEY = '" + "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLE+/xyz" + "'",
    "k8s.yaml": "users:\n- user:\n    client-key-data: LS0tLS1CRUdJTiBSU0EgUFJ",
    ".npmrc": "//registry.example.com/:_authToken=abcdefgh123",
    "dockercfg": '{"auths": {"x": {"auth": "YWRhOmNvcnJlY3Q="}}}',
}
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
}


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_refused_unless_it_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, SECRETS[name])
    write(tmp_path, "main.py", "print(1)")
    with pytest.raises(CheckFailed) as caught:
        refuse_secrets(tmp_path)
    (finding,) = caught.value.findings
    assert finding.where == name
    assert f"--allow-secret {name}" in finding.message
    assert SECRETS[name] not in finding.message or not SECRETS[name]
    refuse_secrets(tmp_path, allowed=[name])


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_harmless_goes_through(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, HARMLESS[name])
    refuse_secrets(tmp_path)


def test_all_of_them_are_named_at_once(tmp_path: Path) -> None:
    for name, text in {**SECRETS, **HARMLESS}.items():
        write(tmp_path, name, text)
    with pytest.raises(CheckFailed) as caught:
        refuse_secrets(tmp_path)
    assert {finding.where for finding in caught.value.findings} == set(SECRETS)


@pytest.mark.parametrize(
    "name", ["AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "WANDB_API_KEY", "DB_PASSWORD", "my_secret"]
)
def test_a_secret_in_a_variable(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        refuse_secrets(tmp_path, {name: "hunter2", "LR": "0.1"})
    assert [finding.where for finding in caught.value.findings] == [name]
    assert "hunter2" not in str(caught.value)
    refuse_secrets(tmp_path, {name: "hunter2"}, allowed=[name])


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "KEY", "PASSWORDLESS", "MONKEY"])
def test_a_harmless_variable(tmp_path: Path, name: str) -> None:
    refuse_secrets(tmp_path, {name: "1"})

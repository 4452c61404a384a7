"""The builders that run commands: the Dockerfile, `docker build`, and Cloud Build."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from distrain_nb.errors import CheckFailed, ImageError
from distrain_nb.image.builders import cloudbuild
from distrain_nb.image.builders import docker as builder
from distrain_nb.image.builders.cloudbuild import CloudBuild
from distrain_nb.image.recipe import Recipe

from .programs import SimpleProgram
from .services.cloud_build import cloud_build, description, faults_in
from .services.google import token_endpoint, write_key
from .services.processes import program as path_of
from .test_docker_runs import bare_run
from .wheels import wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .services.docker import Docker


def test_the_dockerfile_reads_like_one() -> None:
    recipe = Recipe(
        "python:3.11",
        "gcr.io/p/job:1",
        requirements=("numpy>=2",),
        run=("apt-get update && apt-get install -y git", *builder.REDUCTION_SERVER),
        environment={"NOTE": 'a "b" $HOME'},
        labels={"team": "blue"},
    )
    lines = builder.dockerfile(SimpleProgram(requirements=("torch==2.3.0+cpu",)), recipe).split(
        "\n"
    )
    assert lines[:3] == [
        "FROM --platform=linux/amd64 python:3.11",
        "RUN apt-get update && apt-get install -y git",
        f"RUN {builder.REDUCTION_SERVER[0]}",
    ]
    assert "google-reduction-server" in lines[2]
    assert 'ENV NOTE="a \\"b\\" \\$HOME"' in lines
    assert 'LABEL "team"="blue"' in lines
    assert lines.index("COPY worker/ /opt/distrain/worker/") < lines.index(
        "COPY program/ /opt/distrain/program/"
    )
    assert lines[-2] == 'ENTRYPOINT ["python3", "-m", "distrain_nb.worker"]'


@pytest.mark.parametrize(
    "values",
    [
        {"base": "python:3.11\nRUN touch planted"},
        {"platform": "linux/amd64\nRUN touch planted"},
        {"environment": {"NOTE": "a\nRUN touch planted"}},
        {"environment": {"NOTE\nRUN touch planted": "a"}},
        {"labels": {"team": "blue\rRUN touch planted"}},
    ],
    ids=["base", "platform", "environment", "variable", "label"],
)
def test_no_value_is_a_line_of_its_own(values: dict[str, Any]) -> None:
    recipe = Recipe(**{"base": "python:3.11", "target": "gcr.io/p/job:1", **values})
    with pytest.raises(ImageError, match="expected one line"):
        builder.dockerfile(SimpleProgram(), recipe)


def test_the_context_has_all_that_the_dockerfile_copies(tmp_path: Path) -> None:
    program = SimpleProgram(requirements=("torch==2.3.0+cpu",), files={"a/b.txt": b"b"})
    recipe = Recipe("python:3.11", "gcr.io/p/job:1", requirements=("numpy>=2",))
    builder.write_context(program, recipe, tmp_path)
    for line in (tmp_path / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY"):
            assert (tmp_path / line.split()[1]).exists()
    assert (tmp_path / "imports.txt").read_text() == "torch==2.3.0\ttorch\n"
    assert (tmp_path / "requirements.txt").read_text() == "numpy>=2\n"
    assert (tmp_path / "worker/distrain_nb/worker/__init__.py").exists()
    assert not list(tmp_path.rglob("__pycache__"))


def test_secrets_stay_out_of_the_context(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match="kubeconfig"):
        builder.write_context(
            SimpleProgram(files={"kubeconfig": b""}), Recipe("python:3.11", "a/b"), tmp_path
        )


def test_only_what_the_base_lacks_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Dockerfile's own line, with a real shell and a real pip."""
    wheel(tmp_path / "wheels", "ours", "1.0")
    lacking = "ours==1.0; python_version > '3' and python_version < '4'"
    program = SimpleProgram(requirements=("pytest==0.1", "tensorflow-intel==0.1", lacking))
    builder.write_context(program, Recipe("python:3.11", "gcr.io/p/job:1"), tmp_path)
    text = (tmp_path / "Dockerfile").read_text()
    line = next(x for x in text.splitlines() if "imports.txt" in x and x.startswith("RUN"))
    for name, value in {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "wheels"),
        "PIP_TARGET": str(tmp_path / "installed"),
    }.items():
        monkeypatch.setenv(name, value)
    command = line.removeprefix("RUN ").replace("/opt/distrain", str(tmp_path))
    subprocess.run(["sh", "-c", command], check=True)
    assert {path.name for path in (tmp_path / "installed").iterdir()} == {
        "ours",
        "ours-1.0.dist-info",
    }


@pytest.fixture
def docker_here(docker: Docker, monkeypatch: pytest.MonkeyPatch) -> Docker:
    """The private daemon, as this process's `docker` sees it."""
    folder = path_of("docker").rpartition("/")[0]
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin:/usr/sbin:/sbin")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{docker.socket}")
    monkeypatch.setenv("DOCKER_BUILDKIT", "0")
    return docker


PROGRAM = SimpleProgram("import os\nprint(open('/made').read(), os.environ['WHO'])")


def recipe_for(base: str, host: str, name: str, **changes: Any) -> Recipe:
    return Recipe(
        base,
        f"{host}/built/{name}:1",
        run=("echo made by a command > /made",),
        environment={"WHO": "for $me"},
        **changes,
    )


def test_docker_builds_and_pushes(docker_here: Docker, base: str, open_registry: str) -> None:
    steps: list[str] = []
    recipe = recipe_for(base, open_registry, "docker")
    image = builder.build(PROGRAM, recipe, lambda event: steps.append(event.phase))
    assert steps == ["docker build", "docker push"]
    assert "made by a command" in bare_run(docker_here, image, "--network=none")
    assert "for $me" in bare_run(docker_here, image, "--network=none")
    assert image.layers[0].purpose == "base"
    assert {layer.purpose for layer in image.layers[1:]} == {"added"}
    assert image.entrypoint == ("python3", "-m", "distrain_nb.worker")
    assert image.environment["WHO"] == "for $me"
    assert str(image.reference.digest) in str(image)


def test_a_command_that_fails(docker_here: Docker, base: str, open_registry: str) -> None:
    recipe = Recipe(base, f"{open_registry}/built/broken:1", run=("no-such-command",))
    with pytest.raises(ImageError, match=r"docker build failed:(.|\n)*no-such-command: not found"):
        builder.build(PROGRAM, recipe)


def test_without_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="--builder append"):
        builder.build(PROGRAM, Recipe("python:3.11", "gcr.io/p/job:1"))


WHERE = CloudBuild("my-project", "my-bucket", "europe-west4")


def test_the_request_is_what_google_describes() -> None:
    api = description()
    methods = api["resources"]["projects"]["resources"]["locations"]["resources"]["builds"]
    create = methods["methods"]["create"]
    assert create["httpMethod"] == "POST"
    assert create["path"] == "v1/{+parent}/builds"
    pattern = create["parameters"]["parent"]["pattern"]
    assert re.fullmatch(pattern.strip("^$"), WHERE.parent)
    body = WHERE.request(Recipe("python:3.11", "gcr.io/p/job:1"), "context.tar.gz")
    assert faults_in(body, create["request"], api, "build") == []
    wrong = {**body, "stepz": [], "timeout": 3600, "status": "SUCCESS"}
    assert len(faults_in(wrong, create["request"], api, "build")) == 3


@pytest.fixture
def google(docker: Docker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cloudbuild, "_POLL_S", 0.05)
    with (
        token_endpoint({"access_token": "ya29.x", "expires_in": 3600}) as endpoint,
        cloud_build(docker, tmp_path) as address,
    ):
        write_key(tmp_path / "key.json", endpoint)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBUILD", f"{address}/")
        yield


@pytest.mark.usefixtures("google")
def test_cloud_build_builds_and_pushes(docker: Docker, base: str, open_registry: str) -> None:
    image = cloudbuild.build(PROGRAM, recipe_for(base, open_registry, "cloud"), WHERE)
    assert "made by a command" in bare_run(docker, image, "--network=none")


@pytest.mark.usefixtures("google")
def test_a_cloud_build_that_fails(base: str, open_registry: str) -> None:
    recipe = Recipe(base, f"{open_registry}/built/broken:2", run=("no-such-command",))
    with pytest.raises(ImageError, match=r"Cloud Build ended with FAILURE(.|\n)*no-such-command"):
        cloudbuild.build(PROGRAM, recipe, WHERE)


def test_cloud_build_without_a_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    with pytest.raises(ImageError, match="gcloud auth application-default login"):
        cloudbuild.build(PROGRAM, Recipe("python:3.11", "gcr.io/p/job:1"), WHERE)

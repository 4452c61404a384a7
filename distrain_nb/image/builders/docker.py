"""The builder for what needs commands: a readable Dockerfile and its context, for `docker build`.

Where there is no Docker, the same context goes to Cloud Build.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

from distrain_nb.cluster.builds import builds
from distrain_nb.errors import ImageError, shown
from distrain_nb.image.base import read_base
from distrain_nb.image.image import Image, ImageLayer
from distrain_nb.image.progress import Listener, announce
from distrain_nb.image.recipe import (
    ENTRYPOINT,
    PROGRAM,
    ROOT,
    WORKER,
    ProgramFiles,
    Recipe,
    environment_for,
    worker_files,
)
from distrain_nb.image.registry.client import open_registries
from distrain_nb.image.registry.reference import Reference
from distrain_nb.image.requirement_names import requirement_name, without_local_version
from distrain_nb.scratch import Scratch
from distrain_nb.secrets import refuse_secrets

# As Google's documentation has it, "Distributed training": what custom containers of workers need
# in a job with Reduction Server. The key is named in the list: Debian 13 has no `apt-key`.
REDUCTION_SERVER = (
    "curl -s -L https://packages.cloud.google.com/apt/doc/apt-key.gpg"
    " -o /usr/share/keyrings/google-fast-socket.asc"
    ' && echo "deb [signed-by=/usr/share/keyrings/google-fast-socket.asc]'
    ' https://packages.cloud.google.com/apt google-fast-socket main"'
    " > /etc/apt/sources.list.d/google-fast-socket.list"
    " && apt update && apt install -y google-reduction-server",
)
_IMPORTS, _ASKED = "imports.txt", "requirements.txt"
_PIP = "python3 -m pip"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Packages that the program imports are installed where the base has none of these names, in any
# version; what was asked for by name is installed as asked.
_INSTALL_IMPORTS = (
    f"while IFS=\"$(printf '\\t')\" read -r line names; do {_PIP} show -q $names "
    f'|| {_PIP} install --no-cache-dir "$line" || exit 1; done < {ROOT}/{_IMPORTS}'
)


def dockerfile(program: ProgramFiles, recipe: Recipe) -> str:
    """Return the Dockerfile for a program: what changes least often comes first. Raises ImageError
    for a value that would be several lines of it."""
    values = (recipe.base, recipe.platform, *recipe.environment.items(), *recipe.labels.items())
    for value in values:
        if any(map(_CONTROL.search, (value,) if isinstance(value, str) else value)):
            raise ImageError(f"invalid {shown(value)} for a Dockerfile: expected one line")
    lines = [f"FROM --platform={recipe.platform} {recipe.base}"]
    lines += [f"RUN {command}" for command in recipe.run]
    if program.requirements:
        lines += [f"COPY {_IMPORTS} {ROOT}/{_IMPORTS}", f"RUN {_INSTALL_IMPORTS}"]
    if recipe.requirements:
        install = f"{_PIP} install --no-cache-dir -r {ROOT}/{_ASKED}"
        lines += [f"COPY {_ASKED} {ROOT}/{_ASKED}", f"RUN {install}"]
    environment = environment_for(recipe, {})
    del environment["PYTHONPATH"]
    lines += [
        f"COPY worker/ {WORKER}/",
        f"COPY program/ {PROGRAM}/",
        f"ENV PYTHONPATH={WORKER}${{PYTHONPATH:+:$PYTHONPATH}}",
        *(f"ENV {name}={_quoted(value)}" for name, value in environment.items()),
        *(f"LABEL {_quoted(name)}={_quoted(value)}" for name, value in recipe.labels.items()),
        f"WORKDIR {PROGRAM}",
        f"ENTRYPOINT {json.dumps(ENTRYPOINT)}",
    ]
    return "\n".join(lines) + "\n"


def write_context(program: ProgramFiles, recipe: Recipe, folder: Path) -> None:
    """Lay down the Dockerfile and all that it copies. Raises CheckFailed for secrets."""
    (folder / "program").mkdir()
    program.write(folder / "program")
    if not recipe.guarded:
        refuse_secrets(folder / "program", recipe.environment, recipe.allowed_secrets)
    for name, source in worker_files().items():
        target = folder / "worker" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, target)
    for name, lines in (
        (_IMPORTS, map(_with_builds, program.requirements)),
        (_ASKED, recipe.requirements),
    ):
        (folder / name).write_text("".join(f"{x}\n" for x in lines), encoding="utf-8")
    (folder / "Dockerfile").write_text(dockerfile(program, recipe), encoding="utf-8")


def _with_builds(requirement: str) -> str:
    """Return a requirement, a tab, and the names of all packages that take its place."""
    names = builds(requirement_name(requirement))
    return f"{without_local_version(requirement)}\t{' '.join(names)}"


def build(program: ProgramFiles, recipe: Recipe, progress: Listener | None = None) -> Image:
    """Build and push with the `docker` on this machine, and whatever daemon it talks to.

    Raises ImageError with the end of Docker's output if a step fails.
    """
    began = time.monotonic()
    target = Reference.parse(recipe.target)
    with Scratch("docker") as folder:
        write_context(program, recipe, folder)
        announce(progress, "docker build")
        _docker("build", "--tag", str(target), str(folder))
    announce(progress, "docker push")
    output = _docker("push", str(target))
    digest = re.search(r"digest: (sha256:[0-9a-f]{64})", output)
    if digest is None:
        raise ImageError(f"docker push did not report the digest of {target}:\n{output[-500:]}")
    return describe(target.at(digest[1]), recipe, time.monotonic() - began)


def describe(where: Reference, recipe: Recipe, seconds: float) -> Image:
    """Describe an image that another builder has pushed, as its registry has it."""
    base = Reference.parse(recipe.base)
    with open_registries(base, where) as (source, sink):
        built = read_base(sink, where, recipe.platform)
        below = read_base(source, base, recipe.platform)
    below_count = len(below.manifest.layers)
    layers = tuple(
        ImageLayer(
            "base" if number < below_count else "added", layer.digest, layer.size, "by docker"
        )
        for number, layer in enumerate(built.manifest.layers)
    )
    old = below.config.environment
    return Image(
        reference=built.reference,
        base=below.reference,
        platform=built.config.platform,
        layers=layers,
        entrypoint=built.config.entrypoint,
        environment={k: v for k, v in built.config.environment.items() if old.get(k) != v},
        labels=built.config.labels,
        notes=(),
        sent=None,
        seconds=seconds,
    )


def _docker(*arguments: str) -> str:
    program = shutil.which("docker")
    if program is None:
        raise ImageError(
            "The docker builder needs the `docker` command, which isn't here. Without Docker, "
            "choose --builder append, or --builder cloudbuild."
        )
    done = subprocess.run(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ImageError(f"docker {arguments[0]} failed:\n{done.stdout.strip()[-3000:]}")
    return done.stdout


def _quoted(value: str) -> str:
    """Return a value in a Dockerfile, taken as it is."""
    escaped = re.sub(r'(["\\$])', r"\\\1", value)
    return f'"{escaped}"'

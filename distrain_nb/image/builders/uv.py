"""uv, asked to resolve and install wheels for another machine's Python."""

from __future__ import annotations

import ast
import functools
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from distrain_nb.errors import ImageError
from distrain_nb.scratch import Scratch
from distrain_nb.worker.machine.environment import variables

_LOGIN_IN_URL = re.compile(r"(://)[^/@\s]+@")
_NO_WHEEL = re.compile(
    r"Wheels are required for `([^`]+)`|([\w.-]+)(?:==\S+)? has no (?:usable )?wheels|"
    r"([\w.-]+)(?:==\S+)? has no wheels"
)
# How pip's settings are called by uv.
_PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "cert": "SSL_CERT_FILE",
}


@dataclass(frozen=True)
class Python:
    """A Python to install for: `3.11`, and uv's name of the platform."""

    version: str
    platform: str

    def options(self) -> list[str]:
        """Return uv's options for this Python and platform."""
        return [
            f"--python-version={self.version}",
            f"--python-platform={self.platform}",
            "--only-binary=:all:",
            f"--python={sys.executable}",
        ]


def resolve(
    requirements: Sequence[str], python: Python, installed: Mapping[str, str]
) -> tuple[str, ...]:
    """Return `name==version` of all that must be added to what is `installed` (name to version).

    What is installed keeps its version and brings no dependencies of its own. Raises ImageError if
    there is no solution, with the package if it has no wheel.
    """
    with Scratch("uv") as folder:
        required = _lines(folder / "requirements.txt", requirements)
        fixed = [f"{name}=={version}" for name, version in installed.items()]
        constraint = _lines(folder / "installed.txt", fixed)
        for name, version in installed.items():
            _write_empty_wheel(folder, name, version)
        text = _run(
            ["pip", "compile", str(required), f"--constraint={constraint}", "--no-header"]
            + [f"--no-emit-package={name}" for name in installed]
            + ["--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
            + python.options(),
            installed,
            wheels=str(folder),
        )
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return tuple(sorted(line for line in lines if line and not line.startswith("-")))


def install(resolved: Sequence[str], python: Python, folder: Path) -> None:
    """Install the packages of `resolved` in `folder`. Raises ImageError if one is missing."""
    with Scratch("uv") as drafts:
        required = _lines(drafts / "requirements.txt", resolved)
        arguments = [f"--requirement={required}", f"--target={folder}", "--no-deps"]
        _run(["pip", "install", *arguments, *python.options()], {})


def _run(arguments: list[str], installed: Mapping[str, str], wheels: str = "") -> str:
    """Run uv; `wheels` is one more folder with wheels."""
    env = {**_index_settings(), **variables()}
    env["UV_FIND_LINKS"] = ",".join(filter(None, [env.get("UV_FIND_LINKS"), wheels]))
    done = subprocess.run(
        [_program(), *arguments, "--quiet", "--color=never"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise _explained(_LOGIN_IN_URL.sub(r"\1***@", done.stderr).strip(), installed)
    return done.stdout


def _explained(output: str, installed: Mapping[str, str]) -> ImageError:
    if match := _NO_WHEEL.search(output):
        name = next(filter(None, match.groups()))
        return ImageError(
            f"{name} has no wheel for the base's Python and platform, so it would have to be "
            "built from source: choose --builder docker for that, or a version that has a wheel.\n"
            + output
        )
    if installed:
        output += "\nThe base's own packages are not changed: choose another base if one has to be."
    return ImageError(f"cannot resolve the program's packages:\n{output}")


def _program() -> str:
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.exists() else shutil.which("uv")
    if program is None:
        raise ImageError(
            "uv is needed to add packages to an image: install it with `pip install uv`."
        )
    return program


def _index_settings() -> dict[str, str]:
    """Return pip's indexes, for people who have set up pip and not uv."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "uv", "uv.toml")
    if config.exists() or any(name in os.environ for name in ("UV_INDEX", "UV_DEFAULT_INDEX")):
        return {}
    return pip_settings()


@functools.cache
def pip_settings() -> dict[str, str]:
    """Return pip's settings of indexes, as variables of uv."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    settings: dict[str, str] = {}
    for line in listed.stdout.splitlines():
        key, equals, value = line.partition("=")
        name = _PIP_TO_UV.get(key.rpartition(".")[2].lower().replace("_", "-"))
        if equals and name:
            between = "," if name == "UV_FIND_LINKS" else " "
            settings[name] = between.join(str(ast.literal_eval(value)).split())
    if "UV_INDEX" in settings:
        settings.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")  # which is how pip chooses
    return settings


def _lines(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _write_empty_wheel(folder: Path, name: str, version: str) -> None:
    """Write a wheel without files, so that uv takes an installed package for this version."""
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        info = f"{stem}.dist-info"
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")

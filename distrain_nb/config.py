"""Settings that hold for every run of a user: one small YAML file.

Numbers, and names that a cloud asks for; a name that is empty is not set.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from distrain_nb.errors import OptionError

CONFIG_FILE = "config.yaml"


def home() -> Path:
    """`DISTRAIN_HOME`, or `~/.distrain`: where runs and settings live."""
    return Path(os.environ.get("DISTRAIN_HOME") or Path.home() / ".distrain").expanduser().resolve()


def _setting(default: Any, what: str) -> Any:
    return field(default=default, metadata={"help": what})


@dataclass(frozen=True)
class Config:
    """The settings and what they are without a file."""

    carry_limit: float = _setting(64.0, "MiB of values that a cell may carry from the notebook")
    grace: float = _setting(1.5, "seconds between SIGTERM and SIGKILL when a run is stopped")
    idle: float = _setting(600.0, "seconds that the warm fork server stays without a run")
    project: str = _setting("", "project of Google Cloud")
    region: str = _setting("", "region of the cloud, such as us-central1")
    bucket: str = _setting("", "bucket for what jobs write and for code that is staged")
    service_account: str = _setting("", "service account that Vertex AI's jobs run as")
    role: str = _setting("", "IAM role that SageMaker's jobs run as")
    repository: str = _setting("", "where images go: HOST/PATH of a container registry")
    base_image: str = _setting("", "image that images of programs are built on")
    tensorboard: str = _setting("", "Vertex AI TensorBoard instance")
    network: str = _setting("", "VPC network of Vertex AI's jobs")

    @classmethod
    def load(cls) -> Config:
        """What the file says. Raises OptionError naming the file and what is wrong in it."""
        path = home() / CONFIG_FILE
        try:
            found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except FileNotFoundError:
            return cls()
        except yaml.YAMLError as wrong:
            raise OptionError(f"{path}: {wrong}") from None
        config = cls()
        for name, value in found.items() if isinstance(found, dict) else ():
            config = config.changed(str(name), value)
        return config

    def changed(self, name: str, value: object) -> Config:
        """With another value, read from text if need be. Raises OptionError."""
        allowed = [each.name for each in fields(self)]
        if name not in allowed:
            raise OptionError(f"no setting {name!r}; there are {', '.join(allowed)}")
        read = _number if isinstance(getattr(Config, name), float) else _text
        changed: dict[str, Any] = {name: read(name, value)}
        return replace(self, **changed)

    def save(self) -> Path:
        path = home() / CONFIG_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(asdict(self)), encoding="utf-8")
        return path

    def __str__(self) -> str:
        rows = [
            (f"{each.name} = {_shown(getattr(self, each.name))}", each.metadata["help"])
            for each in fields(self)
        ]
        width = max(len(left) for left, _ in rows)
        return "\n".join(f"{left:{width}}  # {right}" for left, right in rows)


def _number(name: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1
    if not 0 <= number < float("inf"):
        raise OptionError(f"setting {name} can't be {value!r}; it is a number, 0 or more")
    return number


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or value != value.strip():
        raise OptionError(f"setting {name} can't be {value!r}; it is a text without blanks around")
    return value


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value) or "(not set)"

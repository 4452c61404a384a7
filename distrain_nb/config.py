"""Settings that hold for every run of a user: one small YAML file.

Numbers, and names that a cloud asks for; a name that is empty is not set.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from distrain_nb.errors import OptionError, StoreError
from distrain_nb.worker.files.disk import close_to_others, private_folder, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG_FILE = "config.yaml"
WAY_OUT = "set the variable DISTRAIN_HOME to a folder of your own"


def home() -> Path:
    """`DISTRAIN_HOME`, or `~/.distrain`: where runs and settings live.

    Raises StoreError where neither names a folder.
    """
    named = os.environ.get("DISTRAIN_HOME")
    try:
        found = Path(named).expanduser() if named else Path.home() / ".distrain"
        return found.resolve()
    except (OSError, RuntimeError) as wrong:
        place = repr(named) if named else "~/.distrain"
        raise StoreError(f"invalid DISTRAIN_HOME {place}: {_brief(wrong)}; {WAY_OUT}") from None


def private_home(folder: Path | None = None) -> Path:
    """The same folder (or `folder`), made if it isn't there, and for its user alone.

    Raises StoreError.
    """
    folder = folder or home()
    with _as_store_error():
        return private_folder(folder)


def own_home(folder: Path | None = None) -> Path:
    """The same folder (or `folder`), closed to others if it is there.

    Raises StoreError if it is somebody else's, or can't be closed.
    """
    folder = folder or home()
    with _as_store_error(), suppress(FileNotFoundError):
        close_to_others(folder)
    return folder


@contextmanager
def _as_store_error() -> Iterator[None]:
    """Errors of the operating system as sentences."""
    try:
        yield
    except OSError as wrong:
        raise StoreError(f"{_brief(wrong)}; {WAY_OUT}") from None


def _brief(wrong: BaseException) -> str:
    """An error in a few words, with the path that it is about but for one too long to read."""
    if not isinstance(wrong, OSError) or wrong.strerror is None:
        return str(wrong)
    return f"{shortened(str(wrong.filename))}: {wrong.strerror}"


def shortened(path: str) -> str:
    """A path that may be too long to read."""
    return path if len(path) <= 200 else f"{path[:120]}… ({len(path):,} characters)"


def _setting(default: Any, what: str) -> Any:
    return field(default=default, metadata={"help": what})


@dataclass(frozen=True)
class Config:
    """The settings, with their defaults."""

    carry_limit: float = _setting(64.0, "MiB of the notebook's values that a cell may take along")
    grace: float = _setting(1.5, "seconds between SIGTERM and SIGKILL when a run is stopped")
    idle: float = _setting(600.0, "seconds until an idle fork server ends")
    warm: bool = _setting(True, "start it as soon as the notebook has imported torch or tensorflow")
    project: str = _setting("", "Google Cloud project")
    region: str = _setting("", "region of the cloud, such as us-central1")
    bucket: str = _setting("", "bucket for the output of jobs and for staged code")
    service_account: str = _setting("", "service account that Vertex AI's jobs run as")
    role: str = _setting("", "IAM role that SageMaker's jobs run as")
    repository: str = _setting("", "where images go: HOST/PATH of a container registry")
    base_image: str = _setting("", "base image of the images that are built")
    tensorboard: str = _setting("", "Vertex AI TensorBoard instance")
    network: str = _setting("", "VPC network of Vertex AI's jobs")

    @classmethod
    def load(cls) -> Config:
        """Read the file. Raises OptionError naming the file and what is wrong in it."""
        path = own_home() / CONFIG_FILE
        try:
            found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError) as wrong:
            raise OptionError(f"cannot read {path}: {wrong}") from None
        except yaml.YAMLError as wrong:
            raise OptionError(f"{path}: {wrong}") from None
        config = cls()
        for name, value in found.items() if isinstance(found, dict) else ():
            config = config.changed(str(name), value)
        return config

    def changed(self, name: str, value: object) -> Config:
        """A copy with another value, parsed if it is text. Raises OptionError."""
        allowed = [each.name for each in fields(self)]
        if name not in allowed:
            raise OptionError(f"unknown setting {name!r}: expected one of {', '.join(allowed)}")
        read = _READERS[type(getattr(Config, name))]
        changed: dict[str, Any] = {name: read(name, value)}
        return replace(self, **changed)

    def save(self) -> Path:
        """Raises StoreError where it can't be written."""
        path = private_home() / CONFIG_FILE
        try:
            replace_file(path, yaml.safe_dump(asdict(self)).encode())
        except OSError as wrong:
            raise StoreError(f"cannot write {path}: {_brief(wrong)}") from None
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
        raise OptionError(f"invalid {name} {value!r}: expected a number, 0 or more")
    return number


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or value != value.strip():
        raise OptionError(f"invalid {name} {value!r}: expected text without spaces around it")
    return value


def _switch(name: str, value: object) -> bool:
    found = _SWITCH.get(str(value).lower())
    if found is None:
        raise OptionError(f"invalid {name} {value!r}: expected on or off")
    return found


_SWITCH = {"on": True, "true": True, "off": False, "false": False}
_READERS = {float: _number, str: _text, bool: _switch}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value) or "(not set)"

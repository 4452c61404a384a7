"""Settings that hold for every run of a user: one small YAML file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from distrain_nb.errors import OptionError, StoreError, did_you_mean, shown
from distrain_nb.worker.files.disk import replace_file
from distrain_nb.worker.files.folder import CONFIG_FILE, home_of_runs
from distrain_nb.worker.files.private_folder import close_to_others, private_folder

_FORM = "expected lines such as idle: 600"
_WIDEST = 27  # characters of a setting with its value, in a list that should fit a notebook
WAY_OUT = "set the variable DISTRAIN_HOME to a folder of your own"
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


def home() -> Path:
    """Return the folder of runs and settings: `DISTRAIN_HOME`, or `~/.distrain`.

    Raises StoreError where neither names a folder.
    """
    try:
        return home_of_runs().resolve()
    except (OSError, RuntimeError) as error:
        named = os.environ.get("DISTRAIN_HOME")
        place = repr(named) if named else "~/.distrain"
        raise StoreError(f"invalid DISTRAIN_HOME {place}: {brief(error)}; {WAY_OUT}") from None


def fingerprint(folder: Path) -> str:
    """Return the name of a DISTRAIN_HOME in a query: the start of the hash of its path."""
    return hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:12]


def private_home(folder: Path | None = None) -> Path:
    """Return the folder of runs (or `folder`), made if it isn't there, and for its user alone.
    Raises StoreError."""
    folder = folder or home()
    with _as_store_error():
        return private_folder(folder)


def own_home(folder: Path | None = None) -> Path:
    """Return the folder of runs (or `folder`), closed to others if it is there. Raises StoreError
    if it is somebody else's, or can't be closed."""
    folder = folder or home()
    with _as_store_error(), suppress(FileNotFoundError):
        close_to_others(folder)
    return folder


@contextmanager
def _as_store_error() -> Iterator[None]:
    """Raise errors of the operating system as sentences."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{brief(error)}; {WAY_OUT}") from None


def brief(error: BaseException) -> str:
    """Return an error in a few words, with the path that it is about but for one too long to
    read."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{shortened(str(error.filename))}: {error.strerror}"


def shortened(path: str) -> str:
    """Return a path that may be too long to read."""
    return path if len(path) <= 200 else f"{path[:120]}… ({len(path):,} characters)"


def path_named(text: str) -> Path:
    """Return the path that a user wrote, with `~` as a home folder, whether or not something is
    there.

    Raises OptionError, as `PATH: REASON`, for one where nothing can be, or be seen.
    """
    try:
        path = Path(text).expanduser()
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()
    except RuntimeError:
        raise OptionError(f"{shortened(text)}: this machine has no such home folder") from None
    except OSError as error:
        raise OptionError(f"{shortened(text)}: {error.strerror}") from None
    except ValueError:
        raise OptionError(f"{shown(text)}: no path has such characters") from None
    return path


def text_named(name: str) -> str:
    """Read the file at a path that a user wrote. Raises OptionError, as `PATH: REASON`."""
    try:
        return path_named(name).read_text(encoding="utf-8")
    except OSError as error:
        raise OptionError(f"{shortened(name)}: {error.strerror}") from None
    except ValueError:
        raise OptionError(f"{shortened(name)}: it is not text in UTF-8") from None


def _setting(default: Any, about: str, allowed: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"help": about, "allowed": allowed})


@dataclass(frozen=True)
class Config:
    """The settings, with their defaults.

    `of_backends` are texts by the names that backends declare, which are not known here.
    """

    carry_limit: float = _setting(
        64.0, "MiB of values that a cell may take along, or of a script's files"
    )
    data_limit: float = _setting(10.0, "GiB that a run may fetch from a bucket, or upload to one")
    grace: float = _setting(1.5, "seconds between SIGTERM and SIGKILL when a run is stopped")
    idle: float = _setting(600.0, "seconds after which an idle fork server ends")
    warm: bool = _setting(
        True, "start the fork server once the notebook imports torch or tensorflow"
    )
    observe: bool = _setting(
        True, "observe which cells read the rank or world size, and run these on each rank"
    )
    mlflow: str = _setting("", "MLflow server, or ARN, to which runs are mirrored; off for none")
    tracking: str = _setting(
        "",
        "vertex: runs of any place with --experiment go to Vertex AI Experiments; off: none do",
        ("", "vertex", "off"),
    )
    notify: str = _setting(
        "", "whom to tell when a run ends or makes no progress: webhook, mail, or webhook,mail"
    )
    smtp: str = _setting("", "server for mails, such as smtp://user@host:587 or smtps://user@host")
    mail: str = _setting("", "address that gets the mails")
    region: str = _setting("", "region of the cloud, such as us-central1")
    agents_start: bool = _setting(False, "let agents start runs with saved layouts, over MCP")
    agents_cancel: bool = _setting(False, "let agents cancel runs, over MCP")
    agents_delete: bool = _setting(False, "let agents delete runs, over MCP")
    of_backends: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Config:
        """Read the file. Raises OptionError naming the file and what is wrong in it."""
        import yaml

        path = own_home() / CONFIG_FILE
        try:
            # Scalars as texts, which `changed` reads: `off` is no boolean, `2001-13-01` no date.
            settings = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
        except FileNotFoundError:
            return cls()
        except RecursionError:
            raise OptionError(f"{path} is nested too deeply: {_FORM}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"cannot read {path}: {error}") from None
        except yaml.YAMLError as error:
            raise OptionError(f"{path}: {error}") from None
        config = cls()
        for name, value in settings.items() if isinstance(settings, dict) else ():
            config = config.changed(str(name), value, {str(name): ""})
        return config

    def changed(self, name: str, value: object, of_backends: Mapping[str, str]) -> Config:
        """Return a copy with another value, parsed if it is text. Raises OptionError.

        `of_backends` are the names that backends declare, and what for.
        """
        if isinstance(value, (dict, list, set, tuple)):  # which aliases may make endless
            raise OptionError(f"invalid {name} {shown(value)}: {_FORM}")
        if name in _help_of_own():
            read = _READERS[type(getattr(Config, name))]
            changed: dict[str, Any] = {name: read(name, value)}
            _check(name, changed[name])
            return replace(self, **changed)
        if name not in of_backends:
            settings = self.documented(of_backends)
            allowed = ", ".join(settings)
            hint = did_you_mean(name, settings, ".")
            raise OptionError(f"unknown setting {name!r}{hint} There are {allowed}")
        return replace(self, of_backends={**self.of_backends, name: _text(name, value)})

    def save(self) -> Path:
        """Raise StoreError where it can't be written, OptionError for a server's login."""
        import yaml

        _refuse_login(self.mlflow)
        _check_server(self.smtp)
        path = private_home() / CONFIG_FILE
        try:
            replace_file(path, yaml.safe_dump({**self._values(), **self.of_backends}).encode())
        except OSError as error:
            raise StoreError(f"cannot write {path}: {brief(error)}") from None
        return path

    @classmethod
    def documented(cls, of_backends: Mapping[str, str]) -> dict[str, str]:
        """Return all settings that there are, and what for."""
        return {**_help_of_own(), **of_backends}

    def described(self, of_backends: Mapping[str, str], detected: Collection[str] = ()) -> str:
        """Return a line a setting, with what it is for; `of_backends` as in `changed`. `detected`
        are the names of those that were found on this machine where none is set."""
        values = {**self._values(), **dict.fromkeys(of_backends, ""), **self.of_backends}
        unknown = dict.fromkeys(values, "no backend that is installed has this setting")
        help_of = {**unknown, **of_backends, **_help_of_own()}
        rows = [
            (f"{name} = {_shown(value, detected=name in detected)}", help_of[name])
            for name, value in values.items()
        ]
        width = min(_WIDEST, max(len(setting) for setting, _ in rows))
        return "\n".join(f"{setting:{width}}  # {right}" for setting, right in rows)

    def _values(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in _help_of_own()}


def _help_of_own() -> dict[str, str]:
    """Return the settings that are known here, and what for."""
    return {
        setting.name: setting.metadata["help"] for setting in fields(Config) if setting.metadata
    }


def _check(name: str, value: object) -> None:
    """Raise OptionError for none of the values that a setting takes, where it names them."""
    allowed = next(
        setting.metadata["allowed"] for setting in fields(Config) if setting.name == name
    )
    if allowed and value not in allowed:
        expected = " or ".join(filter(None, allowed))
        raise OptionError(f"invalid {name} {value!r}: expected {expected}")


def _refuse_login(uri: str) -> None:
    """Raise OptionError for a server's address with a login: no file is to have it, and rank 0,
    which is told what the file says, would be without it."""
    scheme, _, rest = uri.partition("://")
    server, slash, path = rest.partition("/")
    login, at, host = server.rpartition("@")
    if at and scheme in ("http", "https"):
        shown = f"{login.partition(':')[0]}:***@{host}{slash}{path}"
        raise OptionError(
            f"invalid mlflow '{scheme}://{shown}': expected an address without a login, as this "
            "stands in a file; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD by %env"
        )


def _check_server(uri: str) -> None:
    """Raise OptionError for what is no address of a mail server, or has a password in it."""
    from urllib.parse import urlsplit

    server = urlsplit(uri)
    if server.password is not None:
        raise OptionError(
            "invalid smtp: a password in it is saved; `%distrain config smtp_password`"
        )
    if uri and not (server.scheme in ("smtp", "smtps") and server.hostname):
        raise OptionError(f"invalid smtp {uri!r}: expected such as smtp://user@host:587")


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
    switched = _SWITCH.get(str(value).lower())
    if switched is None:
        raise OptionError(f"invalid {name} {value!r}: expected on or off")
    return switched


_READERS: dict[type, Callable[[str, object], object]] = {float: _number, str: _text, bool: _switch}


def _shown(value: object, *, detected: bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    nothing = "(found, see below)" if detected else "(not set)"
    return f"{value:g}" if isinstance(value, float) else str(value) or nothing

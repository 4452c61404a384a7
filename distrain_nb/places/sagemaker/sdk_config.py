"""What an administrator and the user have set for SageMaker's own SDK, in its `config.yaml`.

Two files in one schema, the user's on top of the administrator's: mappings are joined, all else is
replaced. https://sagemaker.readthedocs.io/en/stable/overview.html has the places and the schema.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from distrain_nb.backends.settings import SettingValue
from distrain_nb.errors import OptionError

if TYPE_CHECKING:
    from distrain_nb.types import Json, JsonObject

NAME = "config.yaml"
ADMIN, USER = "SAGEMAKER_ADMIN_CONFIG_OVERRIDE", "SAGEMAKER_USER_CONFIG_OVERRIDE"
CONNECT_S, READ_S = 2, 4

_JOB = ("SageMaker", "TrainingJob")
_MODULES = ("SageMaker", "PythonSDK", "Modules")

# By our name of a setting: where a file may have it, the more specific place first.
_PLACES: dict[str, tuple[tuple[str, ...], ...]] = {
    "role": ((*_MODULES, "ModelTrainer", "role"), (*_JOB, "RoleArn")),
    "bucket": ((*_MODULES, "Session", "DefaultS3Bucket"),),
    "prefix": ((*_MODULES, "Session", "DefaultS3ObjectKeyPrefix"),),
    "base": (
        (*_MODULES, "ModelTrainer", "trainingImage"),
        (*_MODULES, "RemoteFunction", "ImageUri"),
    ),
    "subnet": ((*_JOB, "VpcConfig", "Subnets"),),
    "security_group": ((*_JOB, "VpcConfig", "SecurityGroupIds"),),
    "output_key": ((*_JOB, "OutputDataConfig", "KmsKeyId"),),
    "volume_key": ((*_JOB, "ResourceConfig", "VolumeKmsKeyId"),),
    "label": ((*_JOB, "Tags"),),
    "env": ((*_JOB, "Environment"),),
    "isolate": ((*_JOB, "EnableNetworkIsolation"),),
    "encrypt": ((*_JOB, "EnableInterContainerTrafficEncryption"),),
}
_SWITCHES, _LISTS = ("isolate", "encrypt"), ("subnet", "security_group")

_from_s3: dict[str, str] = {}


def sdk_settings(environ: Mapping[str, str]) -> dict[str, SettingValue]:
    """Return the settings of both files.

    Raises OptionError for a named file that is missing, a file that can't be read, or a value of
    another type than the setting's.
    """
    files = [_read(place, named=place == environ.get(variable)) for variable, place in (
        (USER, environ.get(USER) or str(_folder(environ, "XDG_CONFIG_HOME") / NAME)),
        (ADMIN, environ.get(ADMIN) or str(_folder(environ, "XDG_CONFIG_DIRS") / NAME)),
    )]  # fmt: skip
    settings = {name: _setting(name, [file for file in files if file]) for name in _PLACES}
    return {name: item for name, item in settings.items() if item is not None}


def _folder(environ: Mapping[str, str], variable: str) -> Path:
    """Return the folder in which the SDK looks by default."""
    default = "/etc/xdg" if variable == "XDG_CONFIG_DIRS" else Path.home() / ".config"
    return Path((environ.get(variable) or str(default)).split(os.pathsep)[0], "sagemaker")


def _read(place: str, *, named: bool) -> tuple[str, JsonObject] | None:
    """Return the path and the content of a file.

    `place` is its path, its folder's path or its address in S3. A missing file is None, unless a
    variable names it.
    """
    try:
        if place.startswith("s3://"):
            text = _fetched(place)
        else:
            path = Path(place, NAME) if Path(place).is_dir() else Path(place)
            place, text = str(path), path.read_text(encoding="utf-8")
        data = yaml.safe_load(text) or {}
    except FileNotFoundError:
        if named:
            raise OptionError(f"SageMaker's settings: there is no file {place}") from None
        return None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise OptionError(f"SageMaker's settings can't be read: {place}: {error}") from None
    if not isinstance(data, dict):
        raise OptionError(f"SageMaker's settings: {place} is no mapping")
    return place, data


def _fetched(address: str) -> str:
    """Return an object, or the file below an address that is a folder. It is asked for once."""
    if address not in _from_s3:
        try:
            from boto3 import Session
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as error:
            raise OSError(str(error)) from None
        once = Config(
            connect_timeout=CONNECT_S, read_timeout=READ_S, retries={"total_max_attempts": 1}
        )
        bucket, _, key = address.removeprefix("s3://").partition("/")
        key = key if key.endswith((".yaml", ".yml")) else f"{key.rstrip('/')}/{NAME}".lstrip("/")
        try:
            body = Session().client("s3", config=once).get_object(Bucket=bucket, Key=key)["Body"]
            _from_s3[address] = body.read().decode()
        except (BotoCoreError, ClientError) as error:
            raise OSError(str(error)) from None
    return _from_s3[address]


def _setting(name: str, files: list[tuple[str, JsonObject]]) -> SettingValue | None:
    """Return the setting of the first file that has it; for variables, those of both files."""
    joined: dict[str, str] = {}
    origins: list[str] = []
    for keys in _PLACES[name]:
        for file, content in files:
            value = _at(content, keys)
            if value is None:
                continue
            where = f"{file}: {'.'.join(keys)}"
            if name != "env":
                return SettingValue(_value(name, value, where), file)
            origins.append(file)
            joined = {**_variables(value, where), **joined}
    texts = tuple(f"{variable}={value}" for variable, value in joined.items())
    return SettingValue(texts, " and ".join(origins)) if texts else None


def _at(content: JsonObject, keys: tuple[str, ...]) -> Json:
    value: Json = dict(content)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _value(name: str, value: Json, where: str) -> str | bool | tuple[str, ...]:
    """Return the value of a setting. Raises OptionError for another type."""
    if name in _SWITCHES and isinstance(value, bool):
        return value
    if name in _LISTS and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(str(item) for item in value)
    if name == "label" and isinstance(value, list):
        return tuple(_tag(item, where) for item in value)
    if name not in (*_SWITCHES, *_LISTS, "label") and isinstance(value, str):
        return value
    raise OptionError(f"{where}: {value!r} is not what SageMaker's SDK takes there")


def _tag(value: Json, where: str) -> str:
    if isinstance(value, dict) and isinstance(value.get("Key"), str):
        return f"{value['Key']}={value.get('Value', '')}"
    raise OptionError(f"{where}: {value!r} is no tag: expected Key and Value")


def _variables(value: Json, where: str) -> dict[str, str]:
    if isinstance(value, dict):
        return {str(name): str(text) for name, text in value.items()}
    raise OptionError(f"{where}: {value!r} is no mapping")

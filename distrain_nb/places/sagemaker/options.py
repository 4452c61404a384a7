"""Options of a job on SageMaker, and those with a form of their own as the API has them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from distrain_nb.backends.options import option
from distrain_nb.backends.remote.options import CloudOptions
from distrain_nb.backends.remote.variables import no_secret
from distrain_nb.errors import OptionError
from distrain_nb.layout.durations import seconds
from distrain_nb.places.sagemaker.channels import Channel

if TYPE_CHECKING:
    from distrain_nb.backends.job import Job
    from distrain_nb.types import Json, JsonObject

_SECRET = re.compile(r"[A-Za-z0-9/_+=.@:!-]{1,2048}(?:#[^#]+)?")


@dataclass(frozen=True)
class SageMakerOptions(CloudOptions):
    """Options of a job besides its layout and those of every job."""

    role: str = option(
        "ARN", "IAM role that the job runs as", "", setting="role", like=("service_account",)
    )
    channel: tuple[str, ...] = option(
        "NAME=URI[,mode=MODE]…", "input channel", (),
        like=("nfs", "lustre"), elsewhere="--data NAME=URI",
    )  # fmt: skip
    hyperparameter: tuple[str, ...] = option(
        "NAME=VALUE", "hyperparameter of the job", (), elsewhere="--param NAME=VALUE"
    )
    metric: tuple[str, ...] = option(
        "NAME=REGEX", "metric to read from the log", (), elsewhere="log_metrics in the cell"
    )
    subnet: tuple[str, ...] = option("ID", "subnet of the job", (), like=("network",))
    security_group: tuple[str, ...] = option(
        "ID", "security group of the job", (), like=("network",)
    )
    kms_key: str = option("ID", "key that encrypts volumes and output", "")
    encrypt: bool = option("", "encrypt the traffic between hosts", False)
    isolate: bool = option("", "cut the job off from the network", False)
    keep_alive: str = option(
        "DURATION", "how long to keep machines for the next job", "", like=("persistent_resource",)
    )
    attempts: str = option("N", "most times that the service starts the job", "", like=("restart",))
    reservation: str = option("ARN", "reservation or training plan to use", "")
    check_machines: bool = option(
        "", "test the machines before the program starts", False,
        label="Check machines", folded=True,
        request=("InfraCheckConfig.EnableInfraCheck", "enable_infra_check"),
    )  # fmt: skip
    web_access: bool = option("", "allow a shell in the replicas", False)
    warm_start: tuple[str, ...] = option(
        "JOB[,transfer]", "tuning job whose trials the study learns from", ()
    )
    autotune: bool = option("", "let SageMaker choose what a study leaves open", False)

    def readable(self) -> Mapping[str, tuple[str, ...]]:
        return {**super().readable(), "hyperparameter": self.hyperparameter}


SageMakerJob: TypeAlias = "Job[SageMakerOptions]"


def channels(job: SageMakerJob) -> tuple[Channel, ...]:
    """Return those of `--data`, but for paths that are there already, then those of `--channel`.

    Raises OptionError.
    """
    data = [Channel.read(text, "data") for text in job.data if "=/" not in text]
    more = [Channel.read(text, "channel") for text in job.options.channel]
    names = [channel.name for channel in (*data, *more)]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"--channel {name}: there are two channels of that name")
    return (*data, *more)


def tags(texts: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE texts. Raises OptionError."""
    return dict(_pair(text, "label") for text in texts)


def secret(variable: str, text: str) -> str:
    """Return a secret of Secrets Manager as the worker reads it: `NAME`, or its ARN, and `#KEY` for
    one value of a secret that is a JSON object. Raises OptionError."""
    if not _SECRET.fullmatch(text):
        raise no_secret(variable, text, "NAME[#KEY], or ARN[#KEY]")
    return text


def hyperparameters(texts: Iterable[str]) -> dict[str, Json]:
    """NAME=VALUE texts; a value is a Python literal, or else a text. Raises OptionError."""
    pairs = (_pair(text, "hyperparameter") for text in texts)
    return {name: _literal(value) for name, value in pairs}


def encoded(values: JsonObject) -> dict[str, str]:
    """Return hyperparameters as the containers read them: each value as JSON."""
    return {name: json.dumps(value) for name, value in values.items()}


def metrics(texts: Iterable[str]) -> dict[str, str]:
    """NAME=REGEX texts. Raises OptionError for one that can't be read, or has no group."""
    expressions = {}
    for text in texts:
        name, regex = _pair(text, "metric")
        try:
            groups = re.compile(regex).groups
        except re.error as error:
            where = "" if error.pos is None else f" at character {error.pos + 1}"
            raise OptionError(f"--metric {name}: {regex!r}: {error.msg}{where}") from None
        if not groups:
            raise OptionError(
                f"--metric {name}: {regex!r} has no group: put only the number into the "
                "first one, such as loss=([0-9.]+)"
            )
        expressions[name] = regex
    return expressions


def warm_start(texts: Iterable[str]) -> tuple[list[str], bool]:
    """Return the names of tuning jobs, and whether they had other data. Raises OptionError."""
    names, kinds = [], set()
    for text in texts:
        name, comma, kind = text.partition(",")
        if not name or (comma and kind != "transfer"):
            raise OptionError(f"invalid --warm-start {text!r}: expected JOB or JOB,transfer")
        names.append(name)
        kinds.add(kind)
    return names, "transfer" in kinds


def keep_alive(text: str) -> int | None:
    """Return seconds. Raises OptionError."""
    if not text:
        return None
    try:
        return seconds(text)
    except ValueError:
        raise OptionError(
            f"invalid --keep-alive {text!r}: expected a duration such as 30m, 1h, or seconds"
        ) from None


def attempts(text: str) -> int | None:
    """Return a number of attempts. Raises OptionError."""
    if not text:
        return None
    if not text.isdecimal():
        raise OptionError(f"invalid --attempts {text!r}: expected a number")
    return int(text)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        form = "NAME=REGEX" if option == "metric" else "NAME=VALUE"
        raise OptionError(f"invalid --{option} {text!r}: expected {form}")
    return name, value


def _literal(text: str) -> Json:
    """Return a value that JSON can hold, or the text itself."""
    try:
        value: Json = ast.literal_eval(text)
        json.dumps(value)
    except (ValueError, SyntaxError, TypeError):
        return text
    return value

"""Where Vertex AI Experiments has runs, and what they can be called there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from distrain_nb.backends.settings import SettingValue, first_of_each
from distrain_nb.config import Config
from distrain_nb.errors import OptionError
from distrain_nb.places.vertex.settings import VARIABLES, machine_settings
from distrain_nb.worker.files.tracked import VERTEX_SCHEME

# gcloud's own variable for another address of the service.
OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"
LONGEST_EXPERIMENT, LONGEST = 60, 121  # the latter of it and a run, with a hyphen, by the SDK
SHORTEST = 4  # a resource's identifier
SUFFIX = 6  # what is put behind a name that somebody else has, besides a hyphen
_ODD = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class ExperimentsPlace:
    """The experiments of a project in a region.

    `tensorboard` backs experiments that have none, by its number or full name, else the region's
    default one; `rehearsed` says that a stand-in has them.
    """

    project: str
    region: str
    tensorboard: str = ""
    rehearsed: bool = False

    def __str__(self) -> str:
        """Return the address, from which `of` makes it again."""
        more = {"tensorboard": self.tensorboard, "rehearsed": "1" if self.rehearsed else ""}
        query = urlencode({name: text for name, text in more.items() if text}, safe="/")
        place = f"{VERTEX_SCHEME}//{quote(self.project, safe=':')}/{self.region}"
        return f"{place}?{query}" if query else place

    @classmethod
    def of(cls, uri: str) -> ExperimentsPlace:
        parts = urlsplit(uri)
        query = {name: texts[0] for name, texts in parse_qs(parts.query).items()}
        return cls(
            parts.netloc,
            parts.path.strip("/"),
            query.get("tensorboard", ""),
            rehearsed="rehearsed" in query,
        )

    def page(self, experiment: str, run: str) -> str:
        """Return the run's page in the console, which knows nothing of rehearsals."""
        if self.rehearsed:
            return ""
        console = "https://console.cloud.google.com/vertex-ai/experiments"
        below = f"locations/{self.region}/experiments/{experiment}/runs/{experiment}-{run}"
        return f"{console}/{below}?project={self.project}"


def place_of(config: Config, environ: Mapping[str, str]) -> ExperimentsPlace:
    """Return the place of runs that aren't jobs of Vertex AI: project, region and TensorBoard as
    they are kept, else in the environment, else found on this machine. Raises OptionError where
    nothing says them."""
    texts = {**config.of_backends, "region": config.region}
    variables = {
        name: next((environ[variable] for variable in VARIABLES[name] if environ.get(variable)), "")
        for name in VARIABLES
    }
    chosen = {name: texts.get(name) or variables.get(name, "") for name in ("project", "region")}
    settings = {name: SettingValue(text, "") for name, text in chosen.items()}
    if not all(chosen.values()):
        settings = first_of_each(settings, machine_settings(environ))
    values = {name: str(item.value) for name, item in settings.items()}
    for name, example in (("project", "my-project"), ("region", "us-central1")):
        if not values.get(name):
            raise OptionError(
                f"not mirrored to Vertex AI Experiments: no {name} is set: "
                f"%distrain config {name}={example}"
            )
    return ExperimentsPlace(values["project"], values["region"], texts.get("tensorboard", ""))


def address(environ: Mapping[str, str] = os.environ) -> str:
    """Return where gcloud's variable says that the service is, as `host:port`, if that is this
    machine: a stand-in; else empty."""
    parts = urlsplit(environ.get(OVERRIDE, ""))
    return parts.netloc if parts.hostname in ("127.0.0.1", "localhost") else ""


def experiment_name(name: str) -> str:
    """Return a valid name of an experiment: other characters become hyphens."""
    experiment = _name(name, LONGEST_EXPERIMENT)
    return experiment if len(experiment) >= SHORTEST else f"{experiment}-runs"


def run_name(experiment: str, name: str) -> str:
    """Return a valid name of a run in that experiment."""
    return _name(name, LONGEST - len(experiment) - SUFFIX - 2)


def _name(name: str, longest: int) -> str:
    return _ODD.sub("-", name.lower()).strip("-")[:longest].strip("-") or "unnamed"

"""Options of backends: read from the declarations, refused by the name of who has them."""

from __future__ import annotations

import pytest

from distrain_nb.api import plan
from distrain_nb.backends.plugins import all_backends
from distrain_nb.config import Config
from distrain_nb.errors import OptionError
from distrain_nb.magics.command_line import cell_options, cell_parser
from distrain_nb.options import read

ELSEWHERE = [
    ("local", "nfs", "this machine: it is for --on vertex$"),
    (
        "local",
        "env",
        "this machine: it is for --on ray, --on sagemaker, --on slurm and --on vertex$",
    ),
    ("local", "hyperparameter", "for --on sagemaker; here it is --param NAME=VALUE$"),
    ("local", "rehearse", "this machine: it is for --on sagemaker and --on vertex$"),
    ("vertex", "role", "Vertex AI: it is for --on sagemaker; here it is --service-account EMAIL$"),
    ("vertex", "channel", "for --on sagemaker; here it is --data NAME=URI$"),
    ("vertex", "isolate", "Vertex AI: it is for --on sagemaker$"),
    ("sagemaker", "network", "for --on vertex; here it is --subnet ID and --security-group ID$"),
    ("sagemaker", "nfs", "for --on vertex; here it is --channel NAME=URI"),
    ("sagemaker", "project", "SageMaker: it is for --on vertex$"),
]


@pytest.mark.parametrize(("place", "option", "said"), ELSEWHERE)
def test_an_option_of_another_backend_is_refused_by_its_name(
    place: str, option: str, said: str
) -> None:
    name = "--" + option.replace("_", "-")
    with pytest.raises(OptionError, match=f"^{name} has no meaning on .*{said}"):
        read({"on": place, option: "x"})


def test_every_option_of_a_backend_is_one_of_the_magic_and_of_python() -> None:
    for backend in all_backends():
        known = cell_parser([backend])._option_string_actions
        for each in read({"on": backend.name}).backend_options.__dataclass_fields__:
            assert "--" + each.replace("_", "-") in known


def test_the_magic_gives_what_python_is_given() -> None:
    words = ["--on=vertex", "--label", "a=1", "--label", "b=2", "--rehearse", "--web-access"]
    options = cell_options(words)
    assert options == {
        "on": "vertex", "label": ["a=1", "b=2"], "rehearse": "", "web_access": True,
    }  # fmt: skip
    own = read(options).backend_options
    assert (own.label, own.rehearse, own.web_access) == (("a=1", "b=2"), "", True)
    assert read({"on": "vertex", "label": "a=1"}).backend_options.label == ("a=1",)
    assert read({"on": "sagemaker", "attempts": 3}).backend_options.attempts == "3"


def test_a_setting_stands_in_for_an_option_that_is_not_given() -> None:
    config = Config(of_backends={"bucket": "kept", "base_image": "python", "queue": "another's"})
    own = read({"on": "vertex"}, config).backend_options
    assert (own.bucket, own.base) == ("kept", "python")
    assert read({"on": "vertex", "bucket": "given"}, config).backend_options.bucket == "given"


def test_settings_of_a_backend_that_is_gone_stay(home: object) -> None:
    Config().changed("queue", "long", {"queue": ""}).save()
    config = Config.load()
    assert config.of_backends == {"queue": "long"}
    with pytest.raises(OptionError, match=r"unknown setting 'queue'\. There are carry_limit"):
        config.changed("queue", "short", {})
    assert "no backend that is installed has this" in config.described({})


def test_a_lustre_mount_comes_from_the_magic_to_the_request() -> None:
    mount = "10.0.0.3:lustrefs:projects/p/locations/l/instances/i:fast"
    options = cell_options(["--on", "vertex", "--primary", "n1-standard-4", "--lustre", mount])
    assert options
    assert "mountPoint: fast" in str(plan("print(1)", **options))

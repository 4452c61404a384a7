"""AWS's regions, and the partitions that they are in, by botocore's own data.

Without botocore, which nothing can be sent without, every region is taken for one of `aws`.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from botocore.session import Session

# The consoles of partitions that have a public one, behind `REGION.`
_CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-eusc": "console.amazonaws-eusc.eu",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}


class Partition(NamedTuple):
    """A part of AWS with accounts of its own: its name in ARNs, the domain of its services, the
    form of its regions' names, and the domain of its console, empty where none is public."""

    name: str
    domain: str
    form: str
    console: str


def own_data() -> Session:
    """Return a session that reads botocore's data, whether or not the user's profile exists.

    botocore looks for the data's folder in the profile, and raises ProfileNotFound.
    """
    from botocore.exceptions import ProfileNotFound
    from botocore.loaders import create_loader
    from botocore.session import Session

    session = Session()
    try:
        session.get_component("data_loader")
    except ProfileNotFound:
        loader = create_loader(os.environ.get("AWS_DATA_PATH"))
        session.register_component("data_loader", loader)
    return session


@cache
def partitions() -> tuple[Partition, ...]:
    """Return all that there are, the usual one first."""
    if find_spec("botocore") is None:
        return (Partition("aws", "amazonaws.com", ".*", _CONSOLES["aws"]),)
    names = (
        Partition(
            datum["id"],
            datum["outputs"]["dnsSuffix"],
            datum["regionRegex"],
            _CONSOLES.get(datum["id"], ""),
        )
        for datum in own_data().get_data("partitions")["partitions"]
    )
    return tuple(names)


def partition_of(region: str) -> Partition:
    """Return the one that a region is in; as for botocore, the usual one for what no other
    claims."""
    fitting = (partition for partition in partitions() if re.fullmatch(partition.form, region))
    return next(fitting, partitions()[0])


@cache
def regions() -> dict[str, str]:
    """Return those with SageMaker, as far as the installed botocore knows, and where they are."""
    if find_spec("botocore") is None:
        return {}
    session = own_data()
    return {
        name: datum["regions"][name]["description"]
        for datum in session.get_data("endpoints")["partitions"]
        for name in session.get_available_regions("sagemaker", datum["partition"])
    }

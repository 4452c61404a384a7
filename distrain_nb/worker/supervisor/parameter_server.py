"""A TensorFlow parameter server, of whichever version, that runs none of the program."""

from __future__ import annotations

import importlib
import json
import os
from typing import Optional

_NAMES = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "intel-tensorflow")


def chief() -> str:
    """Return the name of a cluster's first worker in the installed TensorFlow."""
    version = _version()
    return "master" if version is not None and version.startswith(("0.", "1.")) else "chief"


def serve() -> None:
    """Run the server of `TF_CONFIG`, without a GPU, until the process is told to end."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # two processes on one GPU are in each other's way
    train = importlib.import_module("tensorflow.compat.v1").train
    config = json.loads(os.environ["TF_CONFIG"])
    cluster = train.ClusterSpec(config["cluster"])
    train.Server(cluster, job_name="ps", task_index=config["task"]["index"]).join()


def _version() -> Optional[str]:
    """Return TensorFlow's version without importing it; None where it is not installed."""
    from importlib.metadata import distributions  # brings 30 modules, of email too

    for distribution in distributions():
        if (distribution.metadata["Name"] or "").lower() in _NAMES:
            return distribution.version
    return None

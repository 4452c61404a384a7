"""The quickstart's cell on the cloud of each place: a dry run that has all settings, unasked."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kernels import Kernel
from tests.places.stand_ins import PROJECT, metadata_server, sagemaker
from tests.places.test_places import ANSWERS, ARN, INSTANCE_ARN, SPACE, role
from tests.quickstart_cells import cells

VERTEX = "--on vertex --primary n1-standard-4"
SAGEMAKER = "--on sagemaker --workers ml.m5.xlarge"

# What stands in a dry run for a setting that is missing.
STAND_INS = ("PROJECT", "LOCATION", "BUCKET", "REPOSITORY", "'REGION'", "--region REGION")


def in_place(nb: Kernel, folder: Path, environ: dict[str, str], studio: dict[str, str]) -> None:
    """Have the kernel be in that place, and in no other."""
    file = folder / "resource-metadata.json"
    file.write_text(json.dumps(studio or []), encoding="utf-8")
    names = ["GCE_METADATA_HOST", "VERTEX_PRODUCT", "AWS_ENDPOINT_URL_SAGEMAKER"]
    outcome = nb.run(f"""
import os
from pathlib import Path
from distrain_nb.backends import negative_cache
from distrain_nb.places.sagemaker import studio
from distrain_nb.places.vertex import workbench as google
for name in {names}:
    os.environ.pop(name, None)
os.environ.update({environ})
studio.FILE, google.PRODUCT_FILE = Path({str(file)!r}), Path("/nowhere")
studio._answers.clear(), negative_cache._failures.clear()
""")
    assert not outcome.error, outcome.traceback


def test_the_quickstart_s_cell_is_complete_in_each_place(
    nb: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, net, training, *_ = cells()
    for cell in (data, net):
        assert not nb.run(cell).error
    head, _, body = training.partition("\n")
    classic = {**SPACE, "SpaceName": "", "UserProfileName": "me", "AppType": "KernelGateway"}
    with ExitStack() as servers:
        workbench = servers.enter_context(metadata_server({"proxy-mode": "service_account"}))
        colab = servers.enter_context(metadata_server({}))
        aws = servers.enter_context(sagemaker(ANSWERS))
        on_aws = {"AWS_ENDPOINT_URL_SAGEMAKER": f"http://{aws.address}",
                  "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}  # fmt: skip
        google = {"GCE_METADATA_HOST": workbench.address}
        enterprise = {"GCE_METADATA_HOST": colab.address, "VERTEX_PRODUCT": "COLAB_ENTERPRISE"}
        instance = {"ResourceArn": INSTANCE_ARN, "ResourceName": "mine"}
        for options, environ, studio, has in (
            (SAGEMAKER, on_aws, {**SPACE, "ResourceArn": ARN}, role("of-user")),
            (SAGEMAKER, on_aws, classic, role("of-user")),
            (SAGEMAKER, on_aws, instance, role("of-instance")),
            (VERTEX, google, {}, f"--project={PROJECT}"),
            (VERTEX, enterprise, {}, f"--project={PROJECT}"),
        ):
            in_place(nb, tmp_path, environ, studio)
            outcome = nb.run(f"{head} {options} --dry-run\n{body}")
            assert not outcome.error, outcome.traceback
            assert has in outcome.text and "error:" not in outcome.text
            assert not [name for name in STAND_INS if name in outcome.text]
            assert "# region e" in outcome.text and ", from " in outcome.text

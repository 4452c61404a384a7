"""A job without workers but with servers: every form is one that Google's tools take."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports, read_any
from distrain_nb.places.vertex.forms.gcloud import split_list

from .jobs import planned

SERVERS = {"primary": "n1-standard-8", "servers": "2*n1-standard-8", "region": "us-central1"}
LAYOUTS = {
    "flags": SERVERS,
    "scheduling": {**SERVERS, "timeout": 3600},
    "a disk": {**SERVERS, "primary": "n1-standard-8,disk=200"},
}


def layout(name: str) -> Layout:
    return Layout.of("vertex", **LAYOUTS[name])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_command_is_read_back(name: str) -> None:
    text = exports(layout(name))["vertex-gcloud"]
    imported = read_any(text)
    assert (imported.layout, imported.left_out) == (layout(name), ())
    assert ("custom-jobs create" in text) == (name != "a disk")
    assert ("--config" in text) == (name == "scheduling")


def test_a_file_of_which_gcloud_refuses_a_pool_says_so() -> None:
    text = exports(layout("flags"))["vertex-yaml"]
    assert text.startswith("# gcloud refuses a file with an empty pool")
    assert yaml.safe_load(text)["workerPoolSpecs"][1] == {}
    full = Layout.of("vertex", primary="n1-standard-8", workers="n1-standard-8")
    assert "# " not in exports(full)["vertex-yaml"]


def test_a_dry_run_has_the_request_and_the_command_that_sends_it() -> None:
    plan = planned(layout("a disk"), code="import torch\n", name="fit")
    text = str(plan)
    body = json.loads("".join(x for x in text.splitlines(True) if not x.startswith("#")))
    assert body["jobSpec"]["workerPoolSpecs"][1] == {} and body["displayName"] == "fit"
    assert body["labels"] == plan.request["labels"]
    assert "gcloud ai custom-jobs" not in text
    place = "projects/my-project/locations/us-central1/customJobs"
    assert f"--data=@FILE https://us-central1-aiplatform.googleapis.com/v1/{place}" in text


def test_a_list_has_the_delimiter_that_it_names() -> None:
    assert split_list("a,b") == ["a", "b"]
    assert split_list("^;^--layers=64,32;--lr=0.1") == ["--layers=64,32", "--lr=0.1"]
    assert split_list("^--^a,b--c") == ["a,b", "c"]
    command = (
        "gcloud ai custom-jobs create --region=us-central1 --display-name=fit "
        "--worker-pool-spec='^:^machine-type=n1-standard-8:replica-count=1:local-package-path=.:"
        "executor-image-uri=x:python-module=trainer.task' --args='^;^--layers=64,32;--lr=0.1'"
    )
    imported = read_any(command)
    assert imported.script == ("-m", "trainer.task", "--layers=64,32", "--lr=0.1")
    assert imported.layout.primary and imported.layout.primary.machine == "n1-standard-8"


class Api(http.server.BaseHTTPRequestHandler):
    """Takes a job, and keeps what it got."""

    got: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.got.append(json.loads(self.rfile.read(length)))
        answer = b'{"name": "projects/1/locations/us-central1/customJobs/7"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.brief
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcloud"), reason="needs gcloud")
def test_the_real_gcloud_sends_the_empty_pool(tmp_path: Path) -> None:
    server = http.server.HTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "token").write_text("token", encoding="utf-8")
    environment = {
        **os.environ,
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(tmp_path / "token"),
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": f"http://127.0.0.1:{server.server_port}/",
        "CLOUDSDK_CORE_PROJECT": "my-project",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
    }
    for name in ("flags", "scheduling"):
        command = exports(layout(name))["vertex-gcloud"]
        subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, check=True)
        spec = Api.got[-1]["jobSpec"]
        assert [bool(pool) for pool in spec["workerPoolSpecs"]] == [True, False, True]
        assert spec.get("scheduling") == ({"timeout": "3600s"} if name == "scheduling" else None)
    server.shutdown()

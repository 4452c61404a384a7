"""Custom jobs on the stand-in, asked for by Google's own clients and run under Docker."""

from __future__ import annotations

import json

from .conftest import BUCKET, Cloud, pool

HELLO = """\
import os, pathlib, sys
print("hello", os.environ["AIP_MODEL_DIR"])
print("CLUSTER_SPEC", os.environ["CLUSTER_SPEC"])
print("TF_CONFIG" in os.environ)
print("trouble", file=sys.stderr)
folder = pathlib.Path(os.environ["AIP_MODEL_DIR"])
(folder / "weights.txt").write_text("1 2 3")
"""

TWO = """\
import json, os, socket
spec = json.loads(os.environ["CLUSTER_SPEC"])
task = spec["task"]
host, port = spec["cluster"]["workerpool0"][0].split(":")
if task["type"] == "workerpool0":
    with socket.create_server(("", int(port))) as server:
        friend, peer = server.accept()
        own = socket.gethostbyname(host)
        print("primary heard:", friend.recv(100).decode(), peer[0] != own)
else:
    while True:
        try:
            friend = socket.create_connection((host, int(port)))
            break
        except OSError:
            pass
    friend.sendall(b"worker %d is here" % task["index"])
    print("worker spoke", "TF_CONFIG" in os.environ, flush=True)
"""


def test_one_replica(cloud: Cloud) -> None:
    job = cloud.wait(cloud.submit(pool(cloud.image(HELLO))).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    assert job.create_time <= job.start_time <= job.end_time
    said = cloud.said(job.name, "workerpool0-0")
    assert f"[rank 0] hello /gcs/{BUCKET}/out/model/" in said
    assert "[rank 0] trouble" in said
    assert "[rank 0] False" in said
    told = next(x for x in said if "CLUSTER_SPEC" in x).partition("CLUSTER_SPEC ")[2]
    spec = json.loads(told)
    (address,) = spec["cluster"]["workerpool0"]
    assert address.startswith("cmle-training-workerpool0-") and address.endswith("-0:2222")
    assert cloud.bucket.blob("out/model/weights.txt").download_as_bytes() == b"1 2 3"


def test_two_replicas_find_each_other(cloud: Cloud) -> None:
    image = cloud.image(TWO)
    job = cloud.wait(cloud.submit(pool(image), pool(image)).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", cloud.told(job)
    assert "[rank 0] primary heard: worker 0 is here True" in cloud.said(job.name, "workerpool0-0")
    assert "[rank 1] worker spoke True" in cloud.said(job.name, "workerpool1-0")

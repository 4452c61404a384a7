"""Requests to slurmrestd and its answers, by the descriptions of its API; where its token goes."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jsonschema
import pytest

from distrain_nb.errors import OptionError
from distrain_nb.places.slurm import rest_bodies, sinfo
from distrain_nb.places.slurm.commands import Refused
from distrain_nb.places.slurm.controller import is_unencrypted, read_url
from distrain_nb.places.slurm.plan import FIND_SRUN
from distrain_nb.places.slurm.rest import Rest
from distrain_nb.places.slurm.sinfo import Nodes
from tests.slurm.test_words import found, planned

FACTS = json.loads(Path(__file__).with_name("slurmrestd.json").read_text())
NUMBER = {
    "type": "object",
    "properties": {
        "set": {"type": "boolean"}, "infinite": {"type": "boolean"}, "number": {"type": "integer"},
    },
    "additionalProperties": False,
}  # fmt: skip
KINDS = {
    "optional number": NUMBER,
    "strings": {"type": "array", "items": {"type": "string"}},
    "names": {"type": "array", "items": {"type": "string"}},
    **{kind: {"type": kind} for kind in ("string", "integer", "boolean")},
}
OPTIONS = {
    "job-name": "sum", "nodes": "2", "ntasks-per-node": "1", "gres": "gpu:a100:2,shard:1",
    "time": "01:30:30", "cpus-per-task": "3", "signal": "USR1@60", "partition": "main",
    "constraint": "fast", "mem": "1.5G", "account": "llm", "qos": "high", "reservation": "r",
    "exclusive": "", "chdir": "/home/me", "output": "/jobs/abc/said", "nice": "-10", "hold": "",
    "contiguous": "", "comment": "c", "dependency": "afterok:1", "licenses": "l", "wckey": "w",
    "prefer": "p", "mcs-label": "m",
}  # fmt: skip


def schema(groups: dict[str, list[str]]) -> dict[str, object]:
    kinds = {name: KINDS[kind] for kind, names in groups.items() if kind in KINDS for name in names}
    return {"type": "object", "properties": kinds, "additionalProperties": False}


@pytest.mark.parametrize("version", [42, 43, 44, 45, 46])
def test_a_job_is_as_the_api_describes_it(version: int) -> None:
    request = rest_bodies.body(version, OPTIONS, "#!/bin/bash\n", {"PATH": "/bin", "A": "1=2"})
    assert list(request) == ["job"]
    job = request["job"]
    jsonschema.validate(job, schema(FACTS["job"]))
    assert set(job["shared"]) <= set(FACTS["shared"])
    assert version < 46 or set(FACTS["names_46"]) >= set(job)
    assert job["environment"] == ["PATH=/bin", "A=1=2"]
    assert job["tres_per_node"] == "gres/gpu:a100:2,gres/shard:1"
    assert job["time_limit"] == {"set": True, "infinite": False, "number": 91}
    assert (job["memory_per_node"]["number"], job["nice"], job["requeue"]) == (1536, -10, False)
    assert (job["kill_warning_signal"], job["kill_warning_delay"]["number"]) == ("USR1", 60)


def optional(number: int | None) -> dict[str, object]:
    return {"set": True, "infinite": number is None, "number": number or 0}


JOBS = [
    {
        "job_id": 12, "name": "a|b", "job_state": ["RUNNING", "COMPLETING"], "state_reason": "None",
        "start_time": optional(1795772605), "user_name": "me", "user_id": 7, "partition": "main",
        "priority": optional(9),
    },
    {
        "job_id": 13, "name": "c", "job_state": ["PENDING"], "state_reason": "Priority",
        "start_time": {"set": False, "infinite": False, "number": 0}, "user_name": "", "user_id": 7,
        "partition": "main", "priority": optional(1),
    },
]  # fmt: skip
NODE = {"cpus": 4, "real_memory": 8000, "gres": "", "active_features": [], "partitions": ["main"]}
NODES = [
    {**NODE, "state": ["IDLE", "CLOUD"], "gres": "gpu:a100:2", "active_features": ["fast"],
     "partitions": ["main", "short"]},
    {**NODE, "state": ["MIXED"]},
    {**NODE, "state": ["IDLE", "DRAIN"], "partitions": ["closed"]},
]  # fmt: skip
PARTITIONS = [
    {"name": "main", "flags": ["DEFAULT"], "partition": {"state": ["UP"]},
     "maximums": {"time": optional(1440), "nodes": optional(None)}, "accounts": {"allowed": ""}},
    {"name": "short", "flags": [], "partition": {"state": ["UP"]},
     "maximums": {"time": optional(10), "nodes": optional(2)}, "accounts": {"allowed": "llm"}},
    {"name": "closed", "flags": [], "partition": {"state": ["DOWN"]},
     "maximums": {"time": optional(None), "nodes": optional(None)}, "accounts": {"allowed": ""}},
]  # fmt: skip


def test_answers_of_newer_versions() -> None:
    kinds = {"job_info": JOBS, "node": NODES, "partition_info": PARTITIONS}
    for name, samples in kinds.items():
        for sample in samples:
            flat = dict(_flat(sample, ""))
            jsonschema.validate(flat, schema(FACTS["answers"][name]))
    first, second = map(rest_bodies.queued, JOBS)
    assert (first.job, first.state, first.name) == ("12", "COMPLETING", "a|b")
    assert (first.start, second.state, second.start) == (1795772605.0, "PENDING", 0.0)
    known = sinfo.read("\n".join(rest_bodies.lines(PARTITIONS, NODES)))
    main, short = known["main"], known["short"]
    assert main.nodes[0] == Nodes(1, "idle", 4, 8000, ("gpu:a100:2",), ("fast",))
    assert (main.default, main.up, main.longest, main.most) == (True, True, 86400, None)
    assert (main.size, short.nodes) == (2, main.nodes[:1])
    assert (short.longest, short.most, known["closed"].up) == (600, 2, False)
    assert known["closed"].idle == 0
    assert rest_bodies.accounts_of(PARTITIONS[1]) == "llm"


def _flat(value: dict[str, object], before: str) -> Iterator[tuple[str, object]]:
    for name, item in value.items():
        if isinstance(item, dict) and "set" not in item:
            yield from _flat(item, f"{before}{name}.")
        else:
            yield before + name, item


def test_the_newest_version_that_both_know() -> None:
    served = [f"/slurm/v0.0.{number}/jobs/" for number in (43, 44, 99)]
    assert rest_bodies.newest([*served, "/slurmdb/v0.0.45/jobs/", "/openapi"]) == 44
    with pytest.raises(
        ValueError, match=r"it has versions of the API: v0\.0\.39; expected v0\.0\."
    ):
        rest_bodies.newest(["/slurm/v0.0.39/jobs"])


def test_words_of_errors() -> None:
    errors = [
        {"description": "Batch job submission failed", "error_number": 2000,
         "error": "Invalid partition name specified", "source": "slurm_submit_batch_job()"},
        {"error_code": 9001, "error": "Failure during parsing"},
    ]  # fmt: skip
    assert rest_bodies.complaint([*errors, errors[1]]) == (
        "Batch job submission failed: Invalid partition name specified; Failure during parsing"
    )


def test_what_a_plan_says() -> None:
    url = "http://10.0.0.5:6820"
    plan = planned("--workers 2*gpu:a100:2 --timeout 90m", url=url + "/", sbatch=("--nice=10",))
    text = str(plan)
    assert f"# POST {url}/slurm/v0.0.46/job/submit, with this script and" in text
    assert '"tres_per_node": "gres/gpu:a100:2"' in text and '"nice": 10' in text
    (finding,) = found("--workers 1", url=url)
    assert (finding.code, str(finding.severity)) == ("slurm.plain-http", "warning")
    assert found("--workers 1", url="https://slurm.example.org") == []
    assert not is_unencrypted("http://localhost:6820") and is_unencrypted("http://login1:6820")
    for text in ("ftp://h", "http://", "h:6820", "http://me:secret@h:6820", "http://h:99999"):
        with pytest.raises(OptionError, match="invalid slurm_url"):
            read_url(text)
    with pytest.raises(OptionError, match="slurmrestd takes no --gpus: --sbatch has --comment, "):
        planned("--workers 1", url=url, sbatch=("--gpus=2",))
    with pytest.raises(OptionError, match="slurmrestd takes no -x: --sbatch has --comment, "):
        planned("--workers 1", url=url, sbatch=("-x",))
    with pytest.raises(OptionError, match="invalid --cpus-per-task 'many': expected a number"):
        planned("--workers 1", url=url, cpus="many")


def test_a_job_finds_srun_by_the_path_of_a_login_shell(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text(f"echo welcome\nPATH={tmp_path}:$PATH\n")
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    script = f"{FIND_SRUN}\ncommand -v srun"
    variables = {"PATH": "/nowhere", "HOME": str(tmp_path)}
    done = subprocess.run(["/bin/bash", "-c", script], env=variables, capture_output=True)
    assert done.stdout.decode().strip() == str(tmp_path / "srun")
    assert FIND_SRUN in str(planned("--workers 1", url="http://localhost:6820"))
    assert FIND_SRUN not in str(planned("--workers 1"))


class _Handler(BaseHTTPRequestHandler):
    asked: list[str]
    elsewhere = ""

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(307 if self.elsewhere else 200)
        self.send_header("Location", f"{self.elsewhere}/openapi/v3")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _serve(elsewhere: str = "") -> tuple[str, list[str], HTTPServer]:
    asked: list[str] = []
    handler = type("Handler", (_Handler,), {"asked": asked, "elsewhere": elsewhere})
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", asked, server


def test_the_token_goes_to_one_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows no redirect, and no proxy gets it."""
    other, asked_other, first = _serve()
    url, asked, second = _serve(other)
    monkeypatch.setenv("http_proxy", other)
    monkeypatch.setenv("SLURM_JWT", "a.b.c")
    with pytest.raises(Refused, match="status 307"):
        Rest(url).jobs()
    assert asked == ["/openapi/v3"] and asked_other == []
    for server in (first, second):
        server.shutdown()
        server.server_close()

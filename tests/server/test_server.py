"""The server extension in a real Jupyter server."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import distrain_nb
from distrain_nb import api
from distrain_nb.config import fingerprint
from distrain_nb.run import Store
from distrain_nb.run.summary import summary_of
from distrain_nb.server.access import is_own
from distrain_nb.worker.files.folder import WATCHED_FILE
from distrain_nb.worker.files.status import State
from distrain_nb.worker.metrics import event_format, writer
from distrain_nb.worker.supervisor.heartbeat import is_drawn, is_watched
from tests.conftest import eventually
from tests.disks import read_only
from tests.server.servers import Server, jupyter_server, stripping_proxy
from tests.server.stored import stored_run

pytestmark = pytest.mark.brief


def test_it_says_what_it_is(store: Store, client: httpx.Client) -> None:
    said = client.get("distrain/version").json()
    assert said == {"version": distrain_nb.__version__, "home": fingerprint(store.folder)}


def test_it_tells_what_the_kernel_would(store: Store, client: httpx.Client) -> None:
    run = stored_run(store, "one\ntwo\n")
    said = client.get(f"distrain/runs/{run.id}/summary").json()
    del said["now"]
    assert said == json.loads(json.dumps(summary_of(run).as_json()))
    log = client.get(f"distrain/runs/{run.id}/log", params={"first": "-1"}).json()
    assert (log["total"], log["first"], log["end"]) == (2, 1, True)
    assert [line[-1] for line in log["lines"]] == ["two"]
    assert run.id in [each["id"] for each in client.get("distrain/runs").json()["runs"]]


def test_a_table_is_told_its_rows_and_what_differs(store: Store, client: httpx.Client) -> None:
    one, other = stored_run(store), stored_run(store, state=State.FAILED)
    events = writer._EventFile(other.folder / "tensorboard")
    for step, loss in enumerate((3.0, 1.0, 2.0)):
        events.write(event_format.event(1.0, step, {"loss": loss}))
    answer = client.get("distrain/runs")
    rows = {row["id"]: row for row in answer.json()["runs"]}
    assert (rows[one.id]["state"], rows[one.id]["best"]) == ("succeeded", None)
    assert rows[other.id]["best"] == {"tag": "loss", "kind": "min", "value": 1.0}
    assert (rows[other.id]["place"], rows[other.id]["size"]) == ("this machine", "2 ranks")
    again = client.get("distrain/runs", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304

    told = client.get("distrain/compare", params={"runs": f"{one.id},{other.id}"}).json()
    assert told["titles"] == [f"stored #{one.id}", f"stored #{other.id}"]
    assert told["rows"][0]["name"] == "state"
    assert told["rows"][0]["texts"] == ["succeeded", "failed"]
    assert [run["id"] for run in told["runs"]] == [one.id, other.id]
    assert client.get("distrain/compare", params={"runs": f"{one.id}"}).status_code == 400
    assert client.get("distrain/compare", params={"runs": "../1,2"}).status_code == 404
    both = {"runs": f"{other.id},{one.id}", "from": "1"}
    curves = client.get("distrain/curves", params=both).json()
    assert [(line["run"], line["step"]) for line in curves["lines"]] == [
        (f"stored #{other.id}", [1, 2])
    ]
    assert client.get("distrain/curves", params={"runs": "1,../2"}).status_code == 404
    many = {"runs": ",".join(["1"] * 51)}
    assert client.get("distrain/curves", params=many).status_code == 400
    other_home = {"home": fingerprint(store.folder.parent)}
    assert client.get("distrain/runs", params=other_home).status_code == 404


def test_a_page_keeps_note_and_tags_of_a_run(store: Store, client: httpx.Client) -> None:
    run = stored_run(store)
    address = f"distrain/runs/{run.id}/annotate"
    kept = client.post(address, params={"note": "<b>late</b>", "tags": "good, old"})
    assert (kept.status_code, kept.json()) == (
        202,
        {"note": "<b>late</b>", "tags": ["good", "old"]},
    )
    assert client.post(address, params={"tags": ""}).json() == {"note": "<b>late</b>", "tags": []}
    assert client.get(address).status_code == 405
    refused = client.post(address, params={"tags": "x" * 65})
    assert refused.status_code == 400
    assert "at most 64 printable characters" in refused.json()["message"]
    listed = {row["id"]: row for row in client.get("distrain/runs").json()["runs"]}
    assert listed[run.id]["annotation"]["note"] == run.note == "<b>late</b>"


def test_what_a_read_only_store_keeps_from_being_done_is_said(
    store: Store, client: httpx.Client
) -> None:
    """A page takes 503 for a server that is away. Needs root: closed folders don't keep it out."""
    folder = stored_run(store).folder
    address = f"distrain/runs/{folder.name}"
    with read_only(folder):
        refused = [
            client.delete(address),
            client.post(f"{address}/cancel"),
            client.post(f"{address}/annotate", params={"note": "n"}),
        ]
    said = ("can't be removed", "can't be cancelled", "keeps its note")
    for answer, words in zip(refused, said, strict=True):
        assert (answer.status_code, words in answer.json()["message"]) == (409, True), answer.text
        assert "Read-only file system" in answer.json()["message"]


def test_a_document_gets_the_end_of_a_run_with_log_and_charts(
    store: Store, client: httpx.Client
) -> None:
    run, going = stored_run(store, "a<b\n"), stored_run(store, state=State.RUNNING)
    events = writer._EventFile(run.folder / "tensorboard")
    for step in range(3):
        events.write(event_format.event(1.0, step, {"loss": 1 / (step + 1)}))
    ending = client.get(f"distrain/runs/{run.id}/ending").json()
    assert ending["final"] and "[rank 0] a<b" in ending["text"]
    assert 'class="dn-log' in ending["html"] and "a&lt;b" in ending["html"]
    assert 'class="dn-figure"' in ending["html"] and "<script" not in ending["html"]
    assert client.get(f"distrain/runs/{going.id}/ending").json()["html"] == ""


def test_metrics_of_several_runs_are_drawn_in_one(store: Store, client: httpx.Client) -> None:
    runs = [stored_run(store), stored_run(store)]
    for run in runs:
        events = writer._EventFile(run.folder / "tensorboard")
        events.write(event_format.event(1.0, 1, {"loss": 1.0}))
    query = {"runs": ",".join(str(run.id) for run in runs[::-1]), "drawn": "1"}
    told = client.get("distrain/overlay", params=query).json()
    assert told["metrics"]["shape"]["keys"] == [[f"stored #{run.id}", "loss"] for run in runs]
    assert "<svg" in told["metrics"]["sheet"]
    assert (told["end"], told["media"]) == (True, None)
    again = client.get("distrain/overlay", params={**query, "seen": told["seen"]}).json()
    assert (again["metrics"], again["seen"]) == (None, told["seen"])


def test_the_kernel_learns_that_a_page_looks(store: Store, client: httpx.Client) -> None:
    run = stored_run(store)
    client.get(f"distrain/runs/{run.id}/summary")
    assert not is_watched(run.folder)
    client.get(f"distrain/runs/{run.id}/summary", params={"watching": "log"})
    assert is_watched(run.folder) and not is_drawn(run.folder)
    client.get(f"distrain/runs/{run.id}/summary", params={"watching": "charts"})
    assert is_drawn(run.folder)
    long_ago = time.time() - 60
    os.utime(run.folder / WATCHED_FILE, (long_ago, long_ago))
    assert not is_watched(run.folder)


@pytest.mark.parametrize("token", ["", "wrong"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "version"),
        ("GET", "runs"),
        ("GET", "compare?runs=1,2"),
        ("GET", "curves?runs=1,2"),
        ("GET", "runs/1/summary"),
        ("GET", "runs/1/log"),
        ("GET", "runs/1/download"),
        ("POST", "runs/1/cancel"),
        ("POST", "runs/1/annotate?note=n"),
        ("GET", "overlay?runs=1,2"),
        ("DELETE", "runs/1"),
        ("GET", "studies"),
        ("GET", "studies/1/study"),
        ("GET", "studies/1/row"),
        ("POST", "studies/1/cancel"),
        ("POST", "studies/1/more?trials=1"),
    ],
)
def test_nothing_without_the_token(
    store: Store, server: Server, token: str, method: str, path: str
) -> None:
    run = stored_run(store, "secret\n")
    with server.client(token) as client:
        refused = client.request(method, f"distrain/{path.replace('1', str(run.id))}")
    assert refused.status_code == 403
    assert "secret" not in refused.text
    assert run.folder.exists()


def test_a_page_of_another_site_is_refused(store: Store, server: Server) -> None:
    run = stored_run(store, "secret\n")
    with server.browser() as browser:
        assert browser.get(f"distrain/runs/{run.id}/log").status_code == 200
        headers = {"Origin": "https://elsewhere.example"}
        refused = browser.get(f"distrain/runs/{run.id}/log", headers=headers)
    assert refused.status_code in (403, 404)
    assert "secret" not in refused.text
    assert "access-control-allow-origin" not in refused.headers


def test_a_cookie_alone_changes_nothing(store: Store, server: Server) -> None:
    run = stored_run(store)
    with server.browser() as browser:
        path = f"distrain/runs/{run.id}"
        assert browser.post(f"{path}/cancel").status_code == 403
        assert browser.delete(path).status_code == 403
        assert run.folder.exists()
        headers = {"X-XSRFToken": browser.cookies["_xsrf"]}
        assert browser.delete(path, headers=headers).status_code == 204
    assert not run.folder.exists()


@pytest.mark.parametrize(
    "number",
    [
        "..%2f..",
        "..",
        "0",
        "999",
        "1/../../x",
        "last",
        "stored",
        "%00",
        "01",
        "1%20",
        "-1",
        "1%2f..",
    ],
)
def test_what_is_no_number_of_a_run_is_not_found(
    store: Store, client: httpx.Client, number: str
) -> None:
    stored_run(store, "secret\n")
    for path in ("log", "summary", "download"):
        answer = client.get(f"distrain/runs/{number}/{path}")
        assert answer.status_code == 404, answer.text
        assert "secret" not in answer.text


@pytest.mark.parametrize("linked", ["", "log.tsv", "tensorboard"])
def test_nothing_outside_the_store_is_read(
    store: Store, client: httpx.Client, tmp_path: Path, linked: str
) -> None:
    run = stored_run(store, "secret\n")
    (run.folder / "tensorboard").mkdir()
    inside, outside = run.folder / linked, tmp_path / "outside"
    shutil.move(inside, outside)
    inside.symlink_to(outside)
    for path in ("log", "download", "metrics"):
        answer = client.get(f"distrain/runs/{run.id}/{path}")
        assert answer.status_code == 404
        assert "secret" not in answer.text
    headers = {"Content-Length": "0"}
    assert client.post(f"distrain/runs/{run.id}/cancel", headers=headers).status_code == 404
    assert client.delete(f"distrain/runs/{run.id}").status_code == 404
    assert outside.exists()
    assert run.id not in [each["id"] for each in client.get("distrain/runs").json()["runs"]]


def test_only_the_users_own_runs_are_opened(store: Store) -> None:
    run = stored_run(store)
    assert is_own(store.folder, run.folder)
    assert not is_own(store.folder, run.folder, user=os.getuid() + 1)
    assert not is_own(store.folder, store.folder / "runs" / "never")


def test_a_page_of_another_home_is_sent_to_its_kernel(store: Store, client: httpx.Client) -> None:
    run = stored_run(store)
    path = f"distrain/runs/{run.id}/summary"
    assert client.get(path, params={"home": fingerprint(store.folder)}).status_code == 200
    refused = client.get(path, params={"home": fingerprint(store.folder.parent)})
    assert refused.status_code == 404
    assert str(store.folder) in refused.json()["message"]


def test_what_is_fetched_again_of_an_ended_run_is_listed(
    store: Store, client: httpx.Client
) -> None:
    def listed() -> dict[str, Any]:
        rows = client.get("distrain/runs").json()["runs"]
        return next(row for row in rows if row["id"] == run.id)

    run = stored_run(store, state=State.FAILED)
    assert (listed()["best"], listed()["cause"]) == (None, "")
    events = writer._EventFile(run.folder / "tensorboard")
    events.write(event_format.event(1.0, 1, {"loss": 0.5}))
    replace(run.status, error="rank 1 failed first").write(run.folder)
    assert listed()["best"] == {"tag": "loss", "kind": "min", "value": 0.5}
    assert listed()["cause"] == "rank 1 failed first"


def test_a_run_without_its_status_is_listed_and_can_be_deleted(
    store: Store, client: httpx.Client
) -> None:
    """One whose whole folder was removed is on no list any more."""
    whole, gone, bare = stored_run(store), stored_run(store), stored_run(store)
    assert client.get("distrain/runs").status_code == 200
    shutil.rmtree(gone.folder)
    (bare.folder / "status.json").unlink()
    told = {each["id"]: each for each in client.get("distrain/runs").json()["runs"]}
    assert told[whole.id]["state"] == "succeeded"
    assert told[bare.id]["state"] == "unreadable" and gone.id not in told
    for run, reason, code in ((gone, "no run", 404), (bare, "can't be read", 204)):
        answer = client.get(f"distrain/runs/{run.id}/summary")
        assert answer.status_code == 404 and reason in answer.text
        assert client.delete(f"distrain/runs/{run.id}").status_code == code
    left = {each["id"] for each in client.get("distrain/runs").json()["runs"]}
    assert whole.id in left and not {gone.id, bare.id} & left


def test_a_wrong_query_is_told(store: Store, client: httpx.Client) -> None:
    run = stored_run(store)
    for path, query, word in (
        ("log", {"count": "many"}, "'many'"),
        ("log", {"role": "chiefs"}, "workers"),
        ("search", {"text": "(", "regex": "1"}, "position 0"),
        ("everything", {}, "summary"),
    ):
        answer = client.get(f"distrain/runs/{run.id}/{path}", params=query)
        assert answer.status_code == 400
        assert word in answer.json()["message"]


@pytest.mark.stands_for("the server extension")
def test_a_run_is_stopped_and_deleted_through_it(
    store: Store, server: Server, client: httpx.Client
) -> None:
    code = "import time\nprint('here', flush=True)\ntime.sleep(600)"
    run = api.submit(code, on="local", ranks_per_replica=2)
    path = f"distrain/runs/{run.id}"
    assert eventually(lambda: client.get(f"{path}/log").json()["total"] == 2, within=60)
    assert client.delete(path).status_code == 409
    answer = client.post(f"{path}/cancel")
    assert answer.status_code == 202
    assert answer.json()["state"] in [str(state) for state in State]
    assert eventually(lambda: client.get(f"{path}/summary").json()["state"] == "cancelled")
    assert client.delete(path).status_code == 204
    assert not run.folder.exists()
    assert client.get(f"{path}/summary").status_code == 404
    said = [line for line in server.log.read_text().splitlines() if f"] run {run.id} is" in line]
    assert [line.rpartition("] ")[2] for line in said] == [
        f"run {run.id} is to stop", f"run {run.id} is deleted",
    ]  # fmt: skip
    assert all(line.startswith("[I ") and "distrain_nb.server" in line for line in said)


def test_a_large_log_is_downloaded_as_it_is_read(
    store: Store, server: Server, client: httpx.Client
) -> None:
    count = 200_000
    run = stored_run(store, "".join(f"line {n}: {'x' * 80}\n" for n in range(count)))
    with client.stream("GET", f"distrain/runs/{run.id}/download") as answer:
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert "attachment" in answer.headers["content-disposition"]
        assert answer.headers["transfer-encoding"] == "chunked"
        lines = list(answer.iter_lines())
    assert len(lines) == count
    assert lines[0].startswith("[rank 0] line 0: x")
    assert lines[-1].startswith(f"[rank 0] line {count - 1}: x")


def test_behind_a_base_url(store: Store, tmp_path: Path) -> None:
    run = stored_run(store, "one\n")
    with jupyter_server(tmp_path, "/proxy/8888/") as server:
        assert server.url.endswith("/proxy/8888/")
        with server.client() as client:
            assert client.get(f"distrain/runs/{run.id}/log").json()["total"] == 1
            outside = client.get(server.url.removesuffix("proxy/8888/") + "distrain/version")
            assert outside.status_code == 404


def test_behind_a_proxy_that_strips_a_prefix(store: Store, server: Server) -> None:
    run = stored_run(store, "one\n")
    with stripping_proxy(server, "/workspace/7/") as url, server.browser(url) as browser:
        assert browser.get(f"distrain/runs/{run.id}/log").json()["total"] == 1
        assert browser.delete(f"distrain/runs/{run.id}").status_code == 403
        headers = {"X-XSRFToken": browser.cookies["_xsrf"]}
        headers["Origin"] = url.removesuffix("/workspace/7/")
        assert browser.delete(f"distrain/runs/{run.id}", headers=headers).status_code == 204
    assert not run.folder.exists()

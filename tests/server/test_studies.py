"""Studies, as the server extension tells of them and takes orders for them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import httpx
import pytest

from distrain_nb.backends.cost import RunCost
from distrain_nb.config import fingerprint
from distrain_nb.run import Store
from distrain_nb.server.access import own_studies
from distrain_nb.study.files import TrialState, read_trials
from distrain_nb.study.rows import StudyListing
from distrain_nb.study.study import Study
from distrain_nb.worker.files.folder import CANCEL_FILE
from distrain_nb.worker.files.status import State, Status
from distrain_nb.worker.supervisor.heartbeat import is_watched
from tests.conftest import eventually
from tests.server.servers import Server
from tests.study.stored import stored_study

pytestmark = [pytest.mark.slow, pytest.mark.brief]
NUMBERS = count(1)
EMPTY = {"Content-Length": "0"}


def new_study(store: Store, trials: int = 3, state: State = State.RUNNING) -> Study:
    """The last of its trials goes on, as long as it does."""
    study = stored_study(store.folder, trials, trials + 2, state, next(NUMBERS))
    if not state.final:
        last = read_trials(study.folder)[-1]
        replace(last, state=TrialState.RUNNING, end=0.0).write(study.folder)
    return study


def listed(client: httpx.Client) -> dict[int, dict[str, object]]:
    return {each["id"]: each for each in client.get("distrain/studies").json()["studies"]}


def test_studies_are_listed_with_state_progress_and_best(
    store: Store, client: httpx.Client
) -> None:
    over, going = new_study(store, state=State.SUCCEEDED), new_study(store)
    (store.folder / "studies" / "notes").mkdir()
    told = listed(client)
    assert [*told][:2] == [going.id, over.id]
    assert told[going.id]["state"] == "running" and not told[going.id]["final"]
    assert (told[going.id]["progress"], told[going.id]["running"]) == ("2 of 5 trials", 1)
    assert (told[over.id]["state"], told[over.id]["progress"]) == ("succeeded", "3 of 5 trials")
    assert str(told[over.id]["best"]).startswith("best val/loss 0.")
    assert f"in trial {over.best.number} (lr=" in str(told[over.id]["best"])
    assert told[going.id]["cost"] == told[over.id]["cost"] == ""
    RunCost(hourly=36.0, currency="EUR", note="storage is not counted").write(going.folder)
    priced = listed(client)[going.id]
    assert "EUR" in str(priced["cost"]) and priced["cost_note"] == "storage is not counted"
    Status.read(going.folder).enter(State.FAILED, "failed", error="odd\nmore").write(going.folder)
    assert (listed(client)[going.id]["state"], listed(client)[going.id]["cause"]) == (
        "failed", "odd",
    )  # fmt: skip
    other = {"home": fingerprint(store.folder.parent)}
    assert client.get("distrain/studies", params=other).status_code == 404
    row = client.get(f"distrain/studies/{over.id}/row").json()
    assert {**row, "end": 0} == {**told[over.id], "end": 0}
    ending = client.get(f"distrain/studies/{over.id}/ending").json()
    assert ending["final"]
    assert ending["text"].startswith(f"study {over.id} (sweep): succeeded, 3 of 5 trials; best ")
    assert "\ntrial 1, succeeded: lr=" in ending["text"]
    assert "dn-trials" in ending["html"] and 'class="dn-figure"' in ending["html"]


def test_the_run_of_a_trial_names_its_study(store: Store, client: httpx.Client) -> None:
    study = new_study(store)
    handle = {"study": study.file.key, "trial": 1, "attempt": 1}
    trial, plain = store.add("a-1", "local", "", "", {}, handle), store.add("b", "local", "", "")
    told = {each["id"]: each for each in client.get("distrain/runs").json()["runs"]}
    assert told[trial.id]["study"] == listed(client)[study.id]["key"] == study.file.key
    assert told[plain.id]["study"] == ""


def test_a_study_is_told_with_its_charts_once(store: Store, client: httpx.Client) -> None:
    study = new_study(store, 12)
    path = f"distrain/studies/{study.id}/study"
    told = client.get(path).json()
    assert told["summary"]["best"] == listed(client)[study.id]["best"]
    assert [trial["id"] for trial in told["summary"]["trials"]] == list(range(1, 13))
    assert "dn-study-sheet" in told["charts"]["sheet"] and told["end"] is False
    assert not is_watched(study.folder)

    def told_once() -> bool:  # importances may come meanwhile, and are told with new charts
        seen = client.get(path).json()["seen"]
        again = client.get(path, params={"seen": seen, "watching": "1"}).json()
        return again["charts"] is None and again["seen"] == seen

    assert eventually(told_once)
    assert is_watched(study.folder)


def test_the_end_of_a_study_is_told_with_its_importances(
    store: Store, client: httpx.Client
) -> None:
    study = new_study(store, 24, State.SUCCEEDED)
    path = f"distrain/studies/{study.id}/study"

    def last() -> bool:
        return bool(client.get(path).json()["end"])

    assert eventually(last, within=120)
    assert "importance for val/loss" in client.get(path).json()["charts"]["sheet"]


def test_a_study_and_its_trials_are_stopped_and_more_are_wanted(
    store: Store, client: httpx.Client
) -> None:
    study = new_study(store)
    path = f"distrain/studies/{study.id}"
    assert client.post(f"{path}/stop?trial=3", headers=EMPTY).status_code == 202
    assert (study.folder / "stop-3").exists()
    assert client.post(f"{path}/more?trials=4", headers=EMPTY).status_code == 202
    assert listed(client)[study.id]["progress"] == "2 of 9 trials"
    for query, said in {
        "stop?trial=1": "trial 1 of study",
        "stop?trial=9": f"study {study.id} has no trial 9 yet",
        "stop?trial=x": "invalid trial 'x': expected a whole number",
        "more?trials=0": "invalid --trials +0: expected 1 or more",
        "more": "invalid trials '': expected a whole number",
        f"more?trials={'9' * 5000}": "expected a whole number",
    }.items():
        refused = client.post(f"{path}/{query}", headers=EMPTY)
        assert refused.status_code == 400 and said in refused.json()["message"], query
    assert not (study.folder / CANCEL_FILE).exists()
    assert client.post(f"{path}/cancel", headers=EMPTY).status_code == 202
    assert (study.folder / CANCEL_FILE).exists()


def test_a_trial_without_a_run_yet_is_not_stopped_by_its_service(
    store: Store, client: httpx.Client
) -> None:
    study = new_study(store)
    replace(study.file, backend="sagemaker").write(study.folder)
    replace(read_trials(study.folder)[-1], run=None).write(study.folder)
    refused = client.post(f"distrain/studies/{study.id}/stop?trial=3", headers=EMPTY)
    assert refused.status_code == 409
    assert refused.json()["message"] == "trial 3 has no run yet"


def test_a_page_of_another_site_stops_no_study(store: Store, server: Server) -> None:
    study = new_study(store)
    path = f"distrain/studies/{study.id}/cancel"
    with server.browser() as browser:
        assert browser.post(path).status_code == 403
        headers = {"X-XSRFToken": browser.cookies["_xsrf"]}
        stranger = browser.post(path, headers={**headers, "Origin": "https://elsewhere.example"})
        assert stranger.status_code in (403, 404)
        assert not (study.folder / CANCEL_FILE).exists()
        assert browser.post(path, headers=headers).status_code == 202


@pytest.mark.parametrize("number", ["..%2f..", "..", "0", "9999", "last", "sweep", "01", "1%2f.."])
def test_what_is_no_number_of_a_study_is_not_found(client: httpx.Client, number: str) -> None:
    for path in ("study", "row"):
        assert client.get(f"distrain/studies/{number}/{path}").status_code == 404
    assert client.post(f"distrain/studies/{number}/cancel", headers=EMPTY).status_code == 404


@pytest.mark.parametrize("linked", ["", "trials", "study.json"])
def test_no_study_outside_the_home_is_read(
    store: Store, client: httpx.Client, tmp_path: Path, linked: str
) -> None:
    study = new_study(store)
    inside, outside = study.folder / linked, tmp_path / "outside"
    shutil.move(inside, outside)
    inside.symlink_to(outside)
    assert client.get(f"distrain/studies/{study.folder.name}/study").status_code == 404
    assert int(study.folder.name) not in listed(client)


NO_GOAL = '{"id": 1, "name": "a", "key": "k", "created": 1, "spec": {"tune": ["lr=1..2"]}}'


@pytest.mark.parametrize(
    ("file", "text", "cause"),
    [
        ("study.json", "{", "can't be read"),
        ("study.json", NO_GOAL, "it names no goal"),
        ("wanted", "some", "wanted is damaged"),
        ("trials/1.json", '{"number": 1, "parameters": {"lr": [1]}}', "parameters.lr is [1]"),
    ],
)
def test_a_damaged_study_says_so_and_hides_no_other(
    store: Store, client: httpx.Client, file: str, text: str, cause: str
) -> None:
    whole, damaged = new_study(store), new_study(store)
    number = damaged.id
    (damaged.folder / file).write_text(text)
    told = listed(client)
    assert told[number]["state"] == "unreadable" and cause in str(told[number]["cause"])
    assert told[whole.id]["state"] == "running"
    assert client.get(f"distrain/studies/{number}/study").status_code == 404


def test_an_ended_study_is_read_once_until_it_goes_on(store: Store) -> None:
    study = new_study(store, state=State.SUCCEEDED)
    listing = StudyListing()
    assert [row.state for row in listing.read([study])] == ["succeeded"]
    for trial in read_trials(study.folder):
        (study.folder / "trials" / f"{trial.number}.json").unlink()
    assert listing.read([study])[0].progress == "3 of 5 trials"
    Status.read(study.folder).enter(State.RUNNING, "running").write(study.folder)
    assert listing.read([study])[0].progress == "0 of 5 trials"


def test_of_hundreds_of_studies_each_keeps_its_handle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By it alone a process is not started again at each poll."""
    monkeypatch.setenv("DISTRAIN_HOME", str(tmp_path))
    for number in range(1, 301):
        stored_study(tmp_path, 0, 1, number=number)
    found = [*own_studies(Store())]
    assert len(found) == 300
    assert all(one is other for one, other in zip(found, own_studies(Store()), strict=True))


def test_whoever_starts_its_process_again_does_so_with_its_own_interpreter(
    store: Store, tmp_path: Path
) -> None:
    """A server's environment may have nothing of what the trials need."""
    study = new_study(store)
    python, told = tmp_path / "python", tmp_path / "told"
    python.write_text(f'#!/bin/sh\necho "$@" > {told}.part && mv {told}.part {told}\n')
    python.chmod(0o755)
    replace(study.file, python=str(python)).write(study.folder)
    gone = replace(Status.read(study.folder), supervisor=None, times={"running": 1.0})
    gone.write(study.folder)
    assert Study(study.folder).state is State.RUNNING
    assert eventually(told.exists, within=60)
    assert told.read_text().split() == ["-m", "distrain_nb.study", str(study.folder)]

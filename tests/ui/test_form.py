"""The job builder without a browser: what it does to a layout, and what it would show."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ET
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.session import Session
from hypothesis import given
from hypothesis import strategies as st
from IPython.display import DisplayHandle

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout, Pool, Role, load
from distrain_nb.layout.formats import exports
from distrain_nb.layout.rules import check
from distrain_nb.repairs import join_lines
from distrain_nb.ui import outputs
from distrain_nb.ui.form import Form, form, form_outputs, page_order, widget
from distrain_nb.ui.form.editing import MOST_STEPS, Editing, History
from distrain_nb.ui.form.fields import POOL_FIELDS, SETTINGS, bytes_of, text_of, with_text
from distrain_nb.ui.form.picture import picture
from distrain_nb.ui.form.view import options, view
from distrain_nb.ui.frontend import Frontend
from tests.layout.layout_strategies import examples, layouts

FIVE = Layout.of(
    "vertex",
    primary="n1-highmem-96+8*V100",
    workers="4*n1-highmem-96+8*V100",
    reducers="16*n1-highcpu-16",
)
_PATHS = [field.name for field in SETTINGS] + [
    f"{role.value}.{field.name}" for role in Role for field in POOL_FIELDS
]


def said(built: Form, **message: Any) -> None:
    """What the page would send next, unless its number is given."""
    following = {"page": "p", "number": (built.widget.heard or ["", 0])[1] + 1}
    built.widget._handle_custom_msg({**following, **message}, [])


@pytest.fixture
def built(tmp_path: Path) -> Form:
    return Form(folder=tmp_path)


def test_alternatives_are_typed_and_each_is_checked(built: Form) -> None:
    said(built, do="set", path="on", text="sagemaker", group="")
    said(built, do="add", role="workers")
    built.set("workers.machine", "ml.p4d.24xlarge")
    (field,) = [it for it in built.widget.view["pools"][0]["extras"] if it["name"] != "image"]
    assert (field["name"], field["text"]) == ("alternatives", "")
    offered = {value: fits for value, _, fits, *_ in built.widget.options["workers.alternatives"]}
    assert offered["ml.p5.48xlarge"] and not offered["ml.trn1.32xlarge"]
    assert "ml.p4d.24xlarge" not in offered
    built.set("workers.alternatives", "ml.p5.48xlarge, 4*ml.g5.12xlarg")
    assert str(built.layout.workers) == "ml.p4d.24xlarge|ml.p5.48xlarge|4*ml.g5.12xlarg"
    assert "ml.p5.48xlarge|ml.g5.12xlarge" in dict(
        row[:2] for row in built.widget.options["workers.alternatives"]
    )
    (finding,) = built.findings
    assert (finding.code, finding.where) == ("machine-unknown", "workers.alternatives")
    built.repair(finding.code, finding.where, "Use ml.g5.12xlarge for the workers")
    assert built.layout.workers.machines[-1] == "ml.g5.12xlarge"
    assert built.findings == ()
    assert built.widget.view["totals"][:2] == [["first", "of 3 choices"], ["1", "replica"]]
    lost = {name: text for name, _, _, text in built.widget.view["exports"]}
    assert lost["sagemaker-python"] == "Not in this form: Workers, alternatives"
    assert lost["sagemaker-json"] == ""
    built.set("workers.alternatives", "4*")
    assert [finding.code for finding in built.findings] == ["field-unreadable"]
    built.set("workers.alternatives", "")
    assert str(built.layout.workers) == "ml.p4d.24xlarge"


def test_the_documents_job_is_built_from_what_the_page_sends(built: Form) -> None:
    said(built, do="set", path="on", text="vertex", group="")
    said(built, do="add", role="primary")
    for name, text in (("machine", "n1-highmem-96"), ("accelerator_count", "3")):
        said(built, do="set", path=f"primary.{name}", text=text, group="")
    said(built, do="set", path="primary.accelerator", text="v100", group="")
    (finding,) = built.findings
    assert (finding.code, finding.where) == ("accelerator-count", "primary.accelerator_count")
    assert built.layout.primary == Pool(1, "n1-highmem-96", "V100", 3)
    fix = "Use 8 x V100"
    said(built, do="repair", code=finding.code, where=finding.where, label=fix)
    said(built, do="add", role="workers")
    said(built, do="set", path="workers.replicas", text="4", group="")
    said(built, do="add", role="reducers")
    assert built.layout == FIVE
    assert built.findings == ()
    assert built.line == exports(FIVE)["options"].rstrip()
    assert built.widget.view["verdict"] == "Everything fits"
    assert built.widget.heard == ["p", 9]


def test_what_can_not_be_read_stays_and_the_layout_keeps_its_value(built: Form) -> None:
    built.layout = FIVE
    built.set("workers.replicas", "4x")
    assert built.layout == FIVE
    (finding,) = built.findings
    assert finding.code == "field-unreadable"
    assert "'4x' is not a whole number" in finding.message
    shown = {f["path"]: f["text"] for pool in built.widget.view["pools"] for f in pool["fields"]}
    assert shown["workers.replicas"] == "4x"
    built.repair("field-unreadable", "workers.replicas", "Keep 4")
    assert built.findings == ()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("workers.replicas", ""),
        ("workers.machine", "n1 standard"),
        ("workers.machine", "4"),
        ("workers.image", "a,b"),
        ("workers.accelerator", "V 100"),
        ("timeout", "soon"),
        ("launcher", "rocket"),
        ("ranks_per_replica", "two"),
    ],
)
def test_texts_that_no_layout_can_hold_are_refused_in_words(path: str, text: str) -> None:
    with pytest.raises(OptionError, match=r"[a-z]"):
        with_text(FIVE, path, text)
    assert Editing(FIVE).typed(path, text).text(path) == text


def test_undo_takes_back_a_field_at_a_time(built: Form) -> None:
    built.layout = FIVE
    for text in ("1", "12", "123"):
        built.set("workers.replicas", text, group="one visit")
    built.set("workers.replicas", "7", group="another visit")
    built.undo()
    assert built.layout.replicas(Role.WORKERS) == 123
    built.undo()
    assert built.layout == FIVE
    built.redo()
    assert built.layout.replicas(Role.WORKERS) == 123
    built.remove("workers")
    assert not built.widget.view["redo"]
    built.undo()
    built.undo()
    built.undo()
    assert built.layout == Layout()
    built.undo()
    assert built.layout == Layout()


def test_history_does_not_grow_for_ever() -> None:
    history = History(Editing())
    for number in range(MOST_STEPS + 50):
        history = history.then(history.now.typed("workers.replicas", str(number)))
    assert len(history.past) == MOST_STEPS


def test_what_was_repaired_is_told_where_it_was_wrong_until_the_next_step(built: Form) -> None:
    built.layout = FIVE.edited({"primary.accelerator_count": 3, "workers.accelerator_count": 3})
    (shown,) = built.widget.view["findings"]
    (primary, _), (workers, _) = shown["places"]
    assert (primary, workers) == ("primary.accelerator_count", "workers.accelerator_count")
    built.repair(shown["code"], primary, shown["fixes"][0])
    assert built.layout == FIVE
    assert built.widget.view["repaired"] == {"label": "Use 8 x V100", "beside": "primary"}
    built.undo()
    assert built.widget.view["repaired"] == {}
    built.set("primary.accelerator_count", "8")
    built.set("workers.accelerator_count", "8")
    built.set("workers.replicas", "-3")
    built.repair("replicas-positive", "workers.replicas", "Remove the workers")
    assert built.widget.view["repaired"] == {"label": "Remove the workers", "beside": ""}
    built.set("region", "us-central1", group="g")
    assert built.widget.view["repaired"] == {}


def test_a_machine_that_is_chosen_brings_its_gpus_but_replaces_none(built: Form) -> None:
    built.layout = Layout.of("vertex", primary="n1-standard-4", workers="n1-highmem-96+8*V100")
    for role in ("primary", "workers"):
        said(built, do="choose", path=f"{role}.machine", text="a3-highgpu-8g")
    assert str(built.layout.primary) == "a3-highgpu-8g+8*H100"
    assert str(built.layout.workers) == "a3-highgpu-8g+8*V100"
    built.undo()
    built.undo()
    for text in ("g2-standard-4", "ct5lp-hightpu-1t", "n1-standard-8"):
        built.set("primary.machine", text)  # typed, it may be half of a longer name
        assert str(built.layout.primary) == text
    for text in ("ct5lp-hightpu-1t", "cloud-tpu", "n1-standard-8"):
        said(built, do="choose", path="primary.machine", text=text)
        assert str(built.layout.primary) == text
    said(built, do="choose", path="region", text="us-central1")
    assert built.layout.region == "us-central1"


def test_python_and_page_see_the_same_layout(built: Form) -> None:
    seen = []
    built.observe(lambda change: seen.append(change["new"]), "layout")
    said(built, do="set", path="on", text="vertex", group="")
    built.layout = FIVE
    usual = Layout("vertex", primary=Pool(machine="n1-standard-4"))
    assert seen == [usual, FIVE]
    assert built.widget.view["pools"][1]["fields"][0]["text"] == "4"
    said(built, do="undo")
    assert built.layout == usual


@pytest.mark.parametrize(
    ("before", "place", "after"),
    [
        ("", "vertex", "--on vertex --primary n1-standard-4"),
        ("", "sagemaker", "--on sagemaker --workers ml.m5.xlarge"),
        (
            "--on local --workers 2 --primary 1",
            "vertex",
            "--on vertex --primary n1-standard-4 --workers 2*n1-standard-4",
        ),
        ("--on local --workers 2", "slurm", "--on slurm --workers 2"),
    ],
)
def test_another_place_keeps_the_pools_that_the_form_shows(
    before: str, place: str, after: str
) -> None:
    moved = Editing(Layout.from_line(before)).typed("on", place)
    assert moved.layout == Layout.from_line(after)
    assert not check(moved.layout)
    assert moved.typed("on", "local").layout == Layout.from_line(before)
    kept = moved.typed("ranks_per_replica", "2").typed("on", "local")
    assert kept.layout.ranks_per_replica == 2


def test_a_script_that_is_pasted_with_its_machines_is_run_on_them(built: Form) -> None:
    text = """PyTorch(entry_point="train.py", source_dir="code", instance_count=2,
        instance_type="ml.m5.xlarge", hyperparameters={"lr": 0.1})"""
    said(built, do="paste", text=text)
    options = "--on sagemaker --workers 2*ml.m5.xlarge --framework pytorch"
    for head, more in ((built.line, ""), (built.rehearsal, " --rehearse")):
        expected = f"%distrain run {options}{more} code/train.py --lr 0.1"
        assert join_lines(head).split() == expected.split()
    said(built, do="paste", text="--on vertex --primary n1-standard-4")
    assert built.line == "%%distrain --on vertex --primary n1-standard-4"


def test_saved_layouts(built: Form, tmp_path: Path) -> None:
    built.layout = FIVE
    said(built, do="save", name=" five ")
    assert load("five", tmp_path) == FIVE
    assert built.widget.files["name"] == "five"
    assert built.widget.files["saved"] == ["five"]
    Layout("sagemaker").save("other", tmp_path)
    said(built, do="save", name="other")
    assert built.widget.files["tone"] == "bad"
    assert load("other", tmp_path) == Layout("sagemaker")
    said(built, do="save", name="other")
    assert load("other", tmp_path) == FIVE
    said(built, do="save", name="no/good")
    assert "invalid name" in built.widget.files["note"]
    said(built, do="load", name="missing")
    assert "five" in built.widget.files["note"]


def test_a_saved_layout_is_run_by_its_name_until_it_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = Form(FIVE)
    built.save("five")
    assert built.line == built.widget.view["cell"] == "%%distrain --layout five"
    assert built.rehearsal == built.widget.view["rehearsal"] == f"{built.line} --rehearse"
    built.set("workers.replicas", "3")
    assert "--workers 3*" in built.line
    built.undo()
    assert built.line == "%%distrain --layout five"
    assert form("five").line == "%%distrain --layout five"
    here = Form(folder=tmp_path)
    assert here.rehearsal == ""
    here.save("mine")
    assert here.line == f"%%distrain --layout {tmp_path / 'mine.yaml'}"
    old = Form(Layout.of("ai-platform", tier="BASIC_GPU"))
    old.save("old")
    assert old.line.startswith("%%distrain --on vertex")
    assert old.rehearsal == f"{old.line} --rehearse"


def test_a_saved_layout_is_opened_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FIVE.save("five")
    assert form("five").layout == FIVE
    assert form("layouts/five.yaml").widget.files["name"] == "five"
    with pytest.raises(OptionError, match="five"):
        form("six")


def test_what_is_pasted_becomes_the_layout(built: Form) -> None:
    said(built, do="paste", text='{"workerPoolSpecs": [{"replicaCount": 1, "odd": 2}]}')
    assert built.layout.on == "vertex"
    assert "odd" in built.widget.files["note"]
    said(built, do="paste", text="hello")
    assert built.widget.files["tone"] == "bad"
    built.undo()
    assert built.layout == Layout()


def test_traffic_is_told_for_the_gradient_that_was_named(built: Form) -> None:
    built.layout = FIVE
    said(built, do="gradient", text="1.34 GB")
    assert built.widget.view["traffic"][0][:2] == ["ring", "2.14 GB"]
    said(built, do="gradient", text="much")
    assert built.gradient_bytes == 1_340_000_000
    assert "400 MB" in built.widget.files["note"]
    assert [bytes_of(text) for text in ("12", "3 kB", "2mb")] == [12, 3000, 2_000_000]


def test_what_reducers_bring_is_told_for_the_step_that_was_named(built: Form) -> None:
    built.layout = FIVE
    said(built, do="gradient", text="1.34 GB")
    said(built, do="step", text="100 ms")
    assert built.widget.view["step"] == "100 ms"
    assert built.widget.view["gain"].startswith("16 reducers shorten a step from 222 ms to 157 ms,")
    said(built, do="step", text="2s")
    assert (built.step_s, built.widget.view["step"]) == (2.0, "2 s")
    assert built.widget.view["gain"].startswith("Reducers don't pay: the backward pass hides 1 s,")
    said(built, do="step", text="soon")
    assert built.step_s == 2.0
    assert "250 ms" in built.widget.files["note"]
    built.layout = Layout.of("sagemaker", workers="4*ml.p3.16xlarge")
    assert not built.widget.view["gain"]


def test_lists_offer_what_fits_first_and_leave_the_rest_in_sight(built: Form) -> None:
    built.layout = FIVE
    offered = built.widget.options["workers.accelerator"]
    assert ["V100", "16 GB", True] in offered
    assert ["H100", "80 GB", False] in offered
    assert [fits for *_, fits in offered] == sorted((o[2] for o in offered), reverse=True)
    assert [value for value, *_ in built.widget.options["workers.accelerator_count"]] == ["8"]


@examples
@given(layouts())
def test_any_layout_can_be_shown(layout: Layout) -> None:
    shown = view(History(Editing(layout)), 1)
    assert len(shown["findings"]) == len(check(layout))
    ET.fromstring(picture(layout))
    options(layout)


@examples
@given(layouts(), st.sampled_from(_PATHS))
def test_typing_what_a_field_shows_changes_nothing(layout: Layout, path: str) -> None:
    name, _, field = path.partition(".")
    if field and layout.pool(Role(name)) is None:
        return
    assert with_text(layout, path, text_of(layout, path)) == layout


@examples
@given(layouts(), st.sampled_from(_PATHS), st.text(max_size=8))
def test_anything_may_be_typed_anywhere(layout: Layout, path: str, text: str) -> None:
    typed = Editing(layout).typed(path, text)
    view(History(typed), 1)
    if typed.drafts:
        assert (typed.layout, typed.text(path)) == (layout, text)
    else:
        assert with_text(typed.layout, path, typed.text(path)) == typed.layout


def test_a_large_cluster_says_how_many_are_not_drawn() -> None:
    drawn = picture(FIVE.edited({"workers.replicas": 400}))
    assert drawn.count("dn-machine") < 120
    assert "× 400" in drawn
    assert ">+ " in drawn


def test_every_region_with_sagemaker_is_offered() -> None:
    known = Session()
    names = [known.get_available_regions("sagemaker", partition)
             for partition in known.get_available_partitions()]  # fmt: skip
    shown = {region: where for region, where, fits in options(Layout("sagemaker"))["region"]}
    assert list(shown) == sorted(chain.from_iterable(names))
    assert shown["eu-central-1"] == "Europe (Frankfurt)"


@pytest.mark.slow  # in a process of its own
def test_a_form_for_another_place_loads_no_sdk() -> None:
    """The list of AWS's regions is botocore's, which takes a fifth of a second to import."""
    code = """
import sys
from distrain_nb.layout import Layout, Pool
from distrain_nb.ui.form.view import options
options(Layout("vertex", primary=Pool()))
print([name for name in ("botocore", "boto3", "google.cloud.aiplatform") if name in sys.modules])
"""
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout == "[]\n"


def test_only_a_place_with_reducers_is_told_what_they_save(built: Form) -> None:
    shown = {}
    for layout in (FIVE, Layout.of("sagemaker", workers="4*ml.p3.16xlarge")):
        built.layout = layout
        shown[layout.on] = bool(built.widget.view["traffic"])
    assert shown == {"vertex": True, "sagemaker": False}
    assert ["ai-platform", "AI Platform"] in built.widget.view["places"]


def test_what_was_typed_is_taken_in_its_order_though_two_threads_bring_it(built: Form) -> None:
    def typed(number: int, text: str) -> None:
        said(built, do="set", path="workers.machine", text=text, group="", number=number)

    said(built, do="set", path="on", text="vertex", group="")
    said(built, do="add", role="workers")
    typed(5, "n1-st")
    assert built.widget.heard == ["p", 2]
    typed(3, "n")
    typed(4, "n1")
    assert built.widget.heard == ["p", 5]
    assert built.layout.workers and built.layout.workers.machine == "n1-st"


def test_what_was_lost_is_not_waited_for_without_end(
    built: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_order, "LOST_AFTER_S", -1)
    said(built, do="set", path="on", text="vertex", group="", number=2)
    assert (built.layout.on, built.widget.heard) == ("vertex", ["p", 2])
    said(built, do="set", path="on", text="sagemaker", group="", number=1)
    assert built.layout.on == "vertex", "it has been overtaken"


def test_what_is_sent_again_does_not_wait_longer(
    built: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(built, do="set", path="on", text="vertex", group="", number=2)
    assert not built.widget.heard
    now = time.monotonic()
    for seconds in (2.0, 4.0):
        later = SimpleNamespace(monotonic=lambda reached=now + seconds: reached)
        monkeypatch.setattr(page_order, "time", later)
        said(built, do="set", path="on", text="vertex", group="", number=2)
    assert (built.layout.on, built.widget.heard) == ("vertex", ["p", 2])


def test_prices_that_come_meanwhile_show_no_older_layout(
    built: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(built, do="set", path="on", text="vertex", group="")
    monkeypatch.setattr(built._costs, "ask", lambda: time.sleep(0.01))  # as a busy kernel takes
    for number in range(20):
        prices = threading.Thread(target=built._price_came)
        prices.start()
        said(built, do=("add", "remove")[number % 2], role="workers")
        prices.join()
        assert built.widget.view["pools"] == built._view()["pools"]


def test_a_page_without_an_answer_sends_again_and_gets_it(
    built: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(built, do="set", path="on", text="vertex", group="", number=1)
    said(built, do="set", path="on", text="sagemaker", group="", number=1, page="other")
    sent: list[object] = []
    monkeypatch.setattr(
        widget.FormWidget, "send_state", lambda shown, *_, **__: sent.append(shown.heard)
    )
    said(built, do="set", path="on", text="vertex", group="", number=1)
    assert built.layout.on == "sagemaker", "it is not done twice"
    assert sent[-1] == ["p", 1]


def test_a_form_opens_with_the_options_that_another_has_written(home: Path) -> None:
    first = Form("--on vertex --primary n1-standard-4 --tune lr=1e-5..1e-1:log --goal min:loss")
    assert first.layout == Layout.of("vertex", primary="n1-standard-4")
    code = str(first.widget.view["again"]).partition("distrain_nb.form")[2]
    second = Form(ast.literal_eval(code))
    assert (second.line, second.layout) == (first.line, first.layout)
    assert "lr=" in second.line


def test_a_document_keeps_the_form_as_it_is(built: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page does is kept once it asks for it, what Python does at once."""
    monkeypatch.setattr(form_outputs, "frontend", lambda: Frontend.PAGE)
    monkeypatch.setattr(outputs, "frontend", lambda: Frontend.PAGE)
    replaced: list[outputs.Bundle] = []
    monkeypatch.setattr(outputs._Updated, "replace", lambda _, bundle: replaced.append(bundle))
    shown: list[outputs.Bundle] = []
    monkeypatch.setattr(DisplayHandle, "display", lambda _, bundle, **__: shown.append(bundle))
    built._ipython_display_()
    (first,) = shown
    assert first["application/vnd.jupyter.widget-view+json"]["model_id"] == built.widget.key
    assert "data-distrain-live" not in first["text/html"]
    built.widget._handle_custom_msg({"do": "keep"}, [])
    said(built, do="set", path="on", text="vertex", group="")
    assert len(replaced) == 1
    built.widget._handle_custom_msg({"do": "keep"}, [])
    built.layout = Layout.of("sagemaker", workers="2*ml.p3.2xlarge")
    last = replaced.pop()
    assert f'data-distrain-live="{built.widget.key}"' in last["text/html"]
    assert "distrain_nb.form(&#x27;--on sagemaker --workers 2*ml.p3.2xlarge" in last["text/html"]
    assert last["text/plain"] == repr(built)
    assert "--on vertex" in replaced.pop()["text/html"]


def test_a_fresh_row_of_a_study_asks_for_what_it_needs(built: Form) -> None:
    said(built, do="tune")
    (fresh,) = built.findings
    assert (fresh.code, fresh.severity.value, fresh.where) == (
        "field-empty",
        "info",
        "tuning.0.name",
    )
    assert fresh.message == "write the parameter's name, such as lr"
    said(built, do="set", path="tuning.0.name", text="lr", group="")
    (finding,) = built.findings
    assert (finding.severity.value, finding.where) == ("error", "tuning.0.values")
    assert "values for lr, such as 1e-5..1e-1" in finding.message

"""Widgets are complete when their comm opens: a page may show them before it hears more of them."""

from __future__ import annotations

from tests.conftest import eventually
from tests.kernels import Kernel, Outcome

WIDGET = "application/vnd.jupyter.widget-view+json"
TRAIN = """%%distrain -n 1 --name {name}
import os
from distrain_nb import log_metrics
from tensorboardX import SummaryWriter
with SummaryWriter(os.environ["AIP_TENSORBOARD_LOG_DIR"]) as writer:
    writer.add_text("about", "two words", 1)
log_metrics({{"train/loss": 0.5}}, step=1)
print("trained")
"""


def on_a_page(nb: Kernel, code: str) -> Outcome:
    return nb.outcome(nb.send(code, on_a_page=True))


def test_the_form_opens_with_its_layout(nb: Kernel) -> None:
    outcome = on_a_page(nb, "%distrain form")
    (form,) = [state for state in outcome.opened if "view" in state]
    assert form["view"]["places"][0][0] == "local"
    assert form["view"]["exports"]
    assert form["options"]
    assert form["files"] == {"name": "", "saved": [], "note": "", "tone": "good"}
    assert form["key"] == outcome.displays[0][WIDGET]["model_id"]  # by which its cell is found


def test_a_run_its_charts_and_what_else_it_wrote_open_with_their_contents(nb: Kernel) -> None:
    assert not nb.run(TRAIN.format(name="first")).error
    outcome = on_a_page(nb, "%distrain show last")
    (run,) = [state for state in outcome.opened if "batch" in state]
    assert (run["summary"]["state"], run["summary"]["name"]) == ("succeeded", "first")
    assert run["batch"]["whole"] is True
    assert run["batch"]["total"] == 1
    charts = [state for state in outcome.opened if "lines" in state]
    assert charts[0]["shape"]["keys"] == [["", "train/loss"]]
    assert all(len(chart["lines"]) == len(chart["shape"]["keys"]) > 0 for chart in charts)
    (media,) = [state for state in outcome.opened if "index" in state]
    assert [row["kind"] for row in media["index"]["rows"]] == ["text"]


def test_the_table_and_a_comparison_open_with_their_contents(nb: Kernel) -> None:
    for name in ("first", "second"):
        assert not nb.run(TRAIN.format(name=name)).error
    outcome = on_a_page(nb, "%distrain")
    (table,) = [state for state in outcome.opened if "key" in state]
    assert table["home"]
    assert table["key"] in outcome.displays[0]["text/html"]
    outcome = on_a_page(nb, "%distrain compare first second")
    (charts,) = [state for state in outcome.opened if "lines" in state]
    assert charts["runs"] == "1,2"
    assert len(charts["lines"]) == len(charts["shape"]["keys"]) == 2


def test_a_form_hears_a_page_whose_earlier_subshell_has_ended(nb: Kernel) -> None:
    """As JupyterLab ends it when it connects again. With ipykernel 7.4 the form heard nothing more,
    and a page said "waiting for the kernel" for ever."""
    model = nb.run(
        "import distrain_nb\nf = distrain_nb.form()\nprint(f.widget.model_id)"
    ).text.strip()
    for number in (1, 2):
        subshell = nb.open_subshell()
        said = {"do": "add", "role": "workers"} if number == 1 else {"do": "undo"}
        nb.tell_widget(model, {**said, "page": "p", "number": number}, subshell)
        heard = f"['p', {number}]\n"
        assert eventually(lambda: nb.run("print(f.widget.heard)").text == heard, 30)  # noqa: B023
        nb.close_subshell(subshell)

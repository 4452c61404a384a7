"""The job builder in JupyterLab: by keyboard, after a reload, in every theme and width."""

from __future__ import annotations

import os
import signal
import statistics
from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Locator, Page, expect

from distrain_nb.layout import Layout, load
from distrain_nb.layout.formats import exports
from tests.browser.jupyter import NOTEBOOK, Lab, OpenNotebook
from tests.browser.waits import becomes

START = """import distrain_nb
from distrain_nb.layout import Layout
f = distrain_nb.form(Layout.from_line({!r}))
f"""
FIVE = Layout.of(
    "vertex",
    primary="n1-highmem-96+8*V100",
    workers="4*n1-highmem-96+8*V100",
    reducers="16*n1-highcpu-16",
)
STUDY = {
    "0.name": "lr",
    "0.values": "1e-5..1e-1",
    "0.scale": "log",
    "1.name": "width",
    "1.values": "16|32|64",
    "goal": "min:val/loss",
    "trials": "20",
    "initial.0": "lr=0.01,width=32",
    "initial.1": "lr=0.1,depth=3",
}
TUNED = "\n".join(
    ["f.tune(); f.tune(); f.begin_with(); f.begin_with()"]
    + [f"f.set('tuning.{path}', {text!r})" for path, text in STUDY.items()]
)
ADD_AND_REMOVE = """async (times) => {
    const form = document.querySelector(".dn-form");
    const there = (what) => new Promise((done) => {
        const look = () => form.querySelector(what) ? done(form.querySelector(what))
            : setTimeout(look, 5);
        look();
    });
    for (let n = 0; n < times; n += 1) {
        (await there("[data-path='+evaluators']")).click();
        const machine = await there("[data-path='evaluators.machine']");
        machine.click();
        await there("[role=listbox]");
        (await there(".dn-evaluators .dn-remove")).click();
    }
    await there("[data-path='+evaluators']");
}"""
TOO_WIDE = """() => [...document.querySelectorAll(".dn-form, .dn-form *")]
    .filter((it) => it.scrollWidth > it.clientWidth + 1 && it.clientWidth > 0)
    .filter((it) => !it.matches("input, .dn-unseen, .dn-row label, svg *"))
    .map((it) => it.className + ": " + it.textContent.slice(0, 60))"""
# Before the kernel has heard of the first; and which of them the page turns on by itself.
CHOOSE_ALL = """() => {
    const { get, set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "checked");
    const places = [...document.querySelectorAll(".dn-places input")];
    for (const place of places) place.click();
    window.turned = [];
    const own = (it, on) => {
        if (on !== get.call(it)) window.turned.push(it.value);
        set.call(it, on);
    };
    for (const it of places) {
        Object.defineProperty(it, "checked", { get: () => get.call(it), set: (on) => own(it, on) });
    }
    return places.at(-1).value;
}"""
CODE = "import torch"
IS_COPIED = "async (text) => await navigator.clipboard.readText() === text"
IS_KEPT = f"""(line) => JSON.stringify(
    {NOTEBOOK}.content.model.cells.get(0).toJSON().outputs).includes(line)"""
OPEN = Callable[..., OpenNotebook]


def form(page: Page) -> Locator:
    return page.locator(".dn-form")


def field(page: Page, path: str) -> Locator:
    return form(page).locator(f'input[data-path="{path}"]')


def verdict(page: Page) -> Locator:
    return form(page).locator(".dn-verdict")


def printed(page: Page, cell: int) -> Locator:
    return page.locator(".jp-Cell").nth(cell).locator(".jp-OutputArea-output pre")


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the thing of that name has the focus."""
    named = """() => {
        const it = document.activeElement;
        return it.getAttribute("aria-label") ?? it.labels?.[0]?.textContent ?? it.textContent;
    }"""
    passed = []
    for start in ("Vertex AI", ""):  # where the form was drawn anew, the page may have the focus
        for _ in range(60):
            page.keyboard.press("Tab")
            passed.append(page.evaluate(named))
            if passed[-1] == name and page.evaluate(
                "() => document.activeElement.closest('.dn-form') !== null"
            ):
                return
        if start:
            form(page).get_by_label(start).focus()
    raise AssertionError(f"Tab does not lead to {name!r} but through {passed}")


def starting(layout: Layout) -> str:
    return START.format(str(layout))


def build_by_keyboard(page: Page) -> None:
    """The documents' job, with a count that does not fit, repaired by a click."""
    keys = page.keyboard
    form(page).get_by_label("This machine").focus()
    for place in ("Ray", "SageMaker", "Slurm", "Vertex AI"):
        keys.press("ArrowRight")
        expect(form(page).get_by_label(place, exact=True)).to_be_checked()
    # The kernel has answered: nothing moves any more.
    expect(form(page).get_by_role("button", name="+ Reduction Server")).to_be_visible()
    expect(verdict(page)).to_have_text("Everything fits")
    expect(form(page)).not_to_have_attribute("data-waiting", "")
    expect(field(page, "primary.machine")).to_have_value("n1-standard-4")
    field(page, "primary.machine").focus()
    keys.press("Control+a")
    keys.type("highmem-96 n1")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(field(page, "primary.machine")).to_have_value("n1-highmem-96")
    keys.press("Tab")
    keys.type("3")
    keys.press("Tab")
    keys.type("v100")
    expect(field(page, "primary.accelerator_count")).to_have_attribute("aria-invalid", "true")
    note = form(page).locator(".dn-primary .dn-note")
    expect(note).to_contain_text("3 x V100 does not fit; n1-highmem-96 takes 8.")
    expect(field(page, "primary.accelerator_count")).to_have_value("3")
    note.get_by_role("button", name="Use 8 x V100").click()
    expect(field(page, "primary.accelerator_count")).to_be_focused()
    expect(field(page, "primary.accelerator_count")).to_have_value("8")
    expect(field(page, "primary.accelerator")).to_have_value("V100")
    tab_to(page, "+ Workers")
    keys.press("Enter")
    expect(field(page, "workers.machine")).to_be_focused()
    keys.press("Shift+Tab")
    keys.type("4")
    tab_to(page, "+ Reduction Server")
    keys.press("Enter")
    expect(field(page, "reducers.machine")).to_have_value("n1-highcpu-16")
    expect(field(page, "reducers.replicas")).to_have_value("16")
    expect(verdict(page)).to_have_text("Everything fits")


def new_cell(opened: OpenNotebook, button: str) -> str:
    """Press a button that writes a cell below the form's, type there, and give what it has then."""
    page, written = opened.page, len(opened.save()["cells"]) + 1
    form(page).get_by_role("button", name=button).press("Enter")
    page.wait_for_function(
        """(count) => document.querySelectorAll(".jp-Notebook .jp-CodeCell").length === count
            && document.activeElement.matches(".jp-CodeCell .cm-content")""",
        arg=written,
    )
    page.keyboard.insert_text(CODE)
    return "".join(opened.save()["cells"][2]["source"])


def test_the_documents_job_by_keyboard(shown: OPEN, lab: Lab) -> None:
    opened = shown("form", "%load_ext distrain_nb", "%distrain form")
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened.run_cells(2)
    form(page).wait_for()
    build_by_keyboard(page)

    page.keyboard.press("Control+z")
    expect(field(page, "reducers.replicas")).to_have_count(0)
    page.keyboard.press("Control+Shift+z")
    expect(field(page, "reducers.replicas")).to_have_value("16")

    wanted = exports(FIVE)
    for name, text in wanted.items():
        form(page).locator(f'[role=tab][data-tab="{name}"]').click()
        form(page).locator(".dn-copy").click()
        page.wait_for_function(IS_COPIED, arg=text)
    assert {"options", "yaml", "vertex-json", "vertex-yaml", "vertex-gcloud"} <= set(wanted)

    assert new_cell(opened, "Put in a new cell") == wanted["options"] + CODE
    assert new_cell(opened, "Rehearse in a new cell") == (
        wanted["options"].rstrip() + " \\\n    --rehearse\n" + CODE
    )
    form(page).get_by_label("Layout", exact=True).fill("five")
    page.keyboard.press("Enter")
    expect(form(page).locator(".dn-note-of-files")).to_contain_text("--layout five")
    assert load("five", lab.folder / "layouts") == FIVE
    assert new_cell(opened, "Put in a new cell") == "%%distrain --layout five\n" + CODE
    assert (
        new_cell(opened, "Rehearse in a new cell") == "%%distrain --layout five --rehearse\n" + CODE
    )

    opened.reload()
    expect(field(page, "reducers.replicas")).to_have_value("16")
    expect(form(page).get_by_label("Layout", exact=True)).to_have_value("five")
    field(page, "workers.replicas").fill("5")
    expect(verdict(page)).to_have_text("1 warning")
    page.evaluate("""() => window.jupyterapp.shell.currentWidget.context.sessionContext
        .session.kernel.reconnect()""")
    field(page, "workers.replicas").fill("4")
    expect(verdict(page)).to_have_text("Everything fits")


def test_the_place_stays_where_it_was_put_last(shown: OPEN) -> None:
    opened = shown("places", "import distrain_nb\nf = distrain_nb.form()\nf", "f.layout.on")
    opened.run_cell(0)
    expect(form(opened.page).get_by_label("Vertex AI")).to_be_visible()
    chosen = opened.page.evaluate(CHOOSE_ALL)
    # Another thread than the one that runs cells hears of it.
    expect(form(opened.page).locator(f'[role=tab][data-tab="{chosen}-yaml"]')).to_be_visible()
    opened.run_cell(1)
    expect(printed(opened.page, 1)).to_have_text(repr(chosen))
    assert opened.page.evaluate("window.turned") == []


def test_a_saved_layout_is_replaced_only_when_asked_twice(shown: OPEN, lab: Lab) -> None:
    FIVE.save("mine", lab.folder / "layouts")
    opened = shown("replace", "import distrain_nb\ndistrain_nb.form()")
    page = opened.page
    opened.run_cell(0)
    name = form(page).get_by_label("Layout", exact=True)
    name.fill("mine")
    save = form(page).get_by_role("button", name="Save")
    save.click()
    expect(form(page).locator(".dn-note-of-files")).to_contain_text("Save again to replace it")
    assert load("mine", lab.folder / "layouts") == FIVE
    form(page).get_by_role("button", name="Load").click()
    expect(field(page, "reducers.replicas")).to_have_value("16")
    form(page).locator('[role=tab][data-tab="import"]').click()
    form(page).locator("textarea").fill("%%distrain --on local --workers 3")
    form(page).get_by_role("button", name="Read it").click()
    expect(field(page, "workers.replicas")).to_have_value("3")


def test_pools_leave_nothing_behind(shown: OPEN) -> None:
    count = (
        "import ipywidgets, comm\n"
        "print(len(ipywidgets.widgets.widget._instances), len(comm.get_comm_manager().comms))"
    )
    opened = shown("many", starting(FIVE), count, count)
    page = opened.page
    opened.run_cells(2)
    form(page).wait_for()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")

    def listeners() -> int:
        devtools.send("HeapProfiler.collectGarbage")
        told = devtools.send("Performance.getMetrics")["metrics"]
        return next(int(one["value"]) for one in told if one["name"] == "JSEventListeners")

    page.evaluate(ADD_AND_REMOVE, 3)
    elements, counts = form(page).locator("*").count(), [listeners()]
    for _ in range(4):
        page.evaluate(ADD_AND_REMOVE, 5)
        counts.append(listeners())
    assert form(page).locator("*").count() == elements
    # JupyterLab itself adds some at times; what a pool leaves behind would show in every round.
    assert min(after - before for before, after in pairwise(counts)) <= 0
    opened.run_cell(2)
    expect(printed(page, 2)).to_have_text(printed(page, 1).inner_text())


@pytest.mark.stands_for("the form in the page")
def test_machines_are_found_by_what_they_have(shown: OPEN) -> None:
    opened = shown("search", starting(FIVE))
    page, keys = opened.page, opened.page.keyboard
    opened.run_cell(0)
    machine = field(page, "workers.machine")
    machine.focus()
    keys.type("H100")
    rows = form(page).get_by_role("option")
    expect(rows.first).to_contain_text("1 × H100 (80 GB)")
    # The kernel has answered: nothing is called wrong that is only being looked for, nor right.
    expect(form(page).locator(".dn-code")).to_contain_text("--workers 4*H100+8*V100")
    expect(machine).not_to_have_attribute("aria-invalid", "true")
    expect(verdict(page)).to_have_text("Not checked yet")
    keys.type(" 8 gpu")
    expect(rows.first).to_contain_text("a3-highgpu-8g")
    expect(rows.first).to_contain_text("8 × H100 (80 GB), 208 vCPU, 1,872 GB, 1,000 Gbit/s")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(machine).to_have_value("a3-highgpu-8g")
    note = form(page).locator(".dn-workers .dn-note")
    expect(note.first).to_contain_text("a3-highgpu-8g does not support V100")
    machine.fill("n1-nothing")
    keys.press("Tab")
    expect(machine).to_have_attribute("aria-invalid", "true")
    machine.fill("cheap")
    expect(rows.first).to_contain_text("n1-standard-4")
    form(page).get_by_role("button", name="+ Parameter servers").click()
    field(page, "servers.machine").fill("1 x L4")
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(field(page, "servers.machine")).to_have_value("g2-standard-4")
    expect(field(page, "servers.accelerator")).to_have_value("L4")
    expect(field(page, "servers.accelerator_count")).to_have_value("1")


def test_one_repair_for_both_pools_and_the_way_back_beside_it(shown: OPEN) -> None:
    three = {"primary.accelerator_count": 3, "workers.accelerator_count": 3}
    opened = shown("both", starting(FIVE.edited({**three, "reducers": None})))
    page = opened.page
    opened.run_cell(0)
    counts = [field(page, path) for path in three]
    expect(verdict(page)).to_have_text("1 error")
    described = set()
    for count in counts:
        expect(count).to_have_attribute("aria-invalid", "true")
        described.add(count.get_attribute("aria-describedby"))
    (sentence,) = described
    expect(page.locator(f"#{sentence}")).to_have_text(
        "Primary, count · Workers, count: 3 x V100 does not fit; n1-highmem-96 takes 8."
    )
    finding = form(page).get_by_role("list", name="Findings").get_by_role("listitem")
    expect(finding).to_have_count(1)
    repairs = finding.locator(".dn-repair")
    expect(repairs).to_have_text(
        ["Use 8 x V100", "Remove the accelerator from the primary and the workers"]
    )
    repairs.first.press("Enter")
    for count in counts:
        expect(count).to_have_value("8")
    expect(counts[0]).to_be_focused()
    tab_to(page, "Undo: Use 8 x V100")
    becomes(page, "() => document.activeElement.closest('.dn-primary') !== null", True)
    page.keyboard.press("Enter")
    for count in counts:
        expect(count).to_have_value("3")
    expect(form(page).get_by_role("button", name="Undo: Use 8 x V100")).to_have_count(0)


def test_verdicts_come_when_the_typing_rests(shown: OPEN) -> None:
    opened = shown("fast", starting(FIVE))
    page = opened.page
    opened.run_cell(0)
    field(page, "workers.replicas").focus()
    page.keyboard.press("End")
    page.evaluate("""() => {
        const verdict = document.querySelector(".dn-verdict");
        let pressed = 0;
        window.waits = [];
        document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
        new MutationObserver(() => requestAnimationFrame(() => {
            window.waits.push(performance.now() - pressed);
        })).observe(verdict, { childList: true, characterData: true, subtree: true });
    }""")
    for _ in range(10):
        page.keyboard.type("x")
        expect(verdict(page)).to_contain_text("1 error")
        page.keyboard.press("Backspace")
        expect(verdict(page)).to_have_text("Everything fits")
    waits = page.evaluate("window.waits")
    assert len(waits) >= 20
    print(f"keystroke to verdict on screen: median {statistics.median(waits):.0f} ms", end=" ")
    print(f"of {len(waits)}, longest {max(waits):.0f} ms")


def test_a_form_that_is_moved_keeps_the_caret(shown: OPEN) -> None:
    """The kernel may write the form's document while somebody is typing in it."""
    opened = shown("moved", starting(FIVE))
    page = opened.page
    opened.run_cell(0)
    expect(page.locator("[data-distrain-live]")).to_have_count(1)
    replicas = field(page, "workers.replicas")
    replicas.fill("12")
    page.evaluate("""() => {
        const parent = document.querySelector(".dn-form").parentElement;
        const copy = parent.cloneNode(false);
        copy.append(parent.querySelector("[data-distrain-live]").cloneNode());
        parent.replaceWith(copy);
    }""")
    expect(replicas).to_be_focused()
    page.keyboard.press("Backspace")
    expect(replicas).to_have_value("1")


def test_it_fits_the_page_in_both_themes(shown: OPEN) -> None:
    broken = FIVE.edited({"primary.accelerator_count": 3, "workers.replicas": 9})
    opened = shown("looks", starting(broken), TUNED)
    page = opened.page
    opened.run_cells(2)
    expect(field(page, "tuning.initial.1")).to_have_value("lr=0.1,depth=3")
    expect(field(page, "tuning.max_failed")).to_have_count(0)
    form(page).get_by_role("button", name="Advanced").click()
    field(page, "tuning.max_failed").fill("3")
    field(page, "tuning.end").fill("max-durations=2h")
    told = form(page).locator(".dn-tuning .dn-note", has_text="unknown setting 'max-durations'")
    expect(told).to_be_visible()
    field(page, "tuning.end").fill("max-duration=2h")
    expect(told).to_have_count(0)
    expect(form(page).locator(".dn-code")).to_contain_text("--end max-duration=2h")
    papers = set()
    for theme in ("Light", "Dark"):
        opened.theme(f"JupyterLab {theme}")
        for width in (1280, 800, 480):
            page.set_viewport_size({"width": width, "height": 1200})
            if width < 1280:
                page.evaluate("window.jupyterapp.shell.collapseLeft()")
            becomes(page, TOO_WIDE, [])
        papers.add(form(page).evaluate("it => getComputedStyle(it).backgroundColor"))
    assert len(papers) == 2


def test_everything_has_a_name_and_findings_are_told(shown: OPEN) -> None:
    opened = shown("names", starting(FIVE), "import os; os.getpid()")
    page = opened.page
    opened.run_cell(0)
    form(page).wait_for()
    nameless = page.evaluate("""() => [...document.querySelectorAll(
            ".dn-form input, .dn-form textarea, .dn-form button")]
        .filter((it) => !(it.labels?.[0]?.textContent || it.ariaLabel || it.textContent.trim()))
        .map((it) => it.outerHTML)""")
    assert nameless == []
    field(page, "primary.accelerator_count").fill("3")
    told = form(page).locator("[aria-live=polite]")
    expect(told).to_contain_text("1 error. Primary, count: 3 x V100 does not fit")
    described = field(page, "primary.accelerator_count").get_attribute("aria-describedby")
    expect(page.locator(f"#{described}")).to_contain_text("n1-highmem-96 takes 8")
    opened.run_cell(1)
    kernel = int(printed(page, 1).inner_text())
    os.kill(kernel, signal.SIGSTOP)
    field(page, "primary.accelerator_count").fill("8")
    expect(form(page)).to_have_attribute("data-waiting", "")
    os.kill(kernel, signal.SIGCONT)
    expect(verdict(page)).to_have_text("Everything fits", timeout=10_000)
    expect(form(page)).not_to_have_attribute("data-waiting", "")


def test_a_form_whose_kernel_has_restarted_changes_no_more_and_says_how_to_go_on(
    notebook: OPEN,
) -> None:
    opened = notebook("ended", starting(Layout.of("vertex", primary="n1-standard-4")), "")
    page = opened.page
    opened.run_cell(0)
    expect(verdict(page)).to_have_text("Everything fits")
    opened.restart_kernel()
    again = "import distrain_nb; distrain_nb.form('--on vertex --primary n1-standard-4')"
    expect(form(page).locator(".dn-ended")).to_be_visible()
    expect(form(page).locator(".dn-again")).to_have_text(again)
    for hidden in (form(page).get_by_label("Vertex AI"), field(page, "primary.machine")):
        assert hidden.evaluate("node => node.closest('[inert]') !== null")
    opened.wait_for_kernel()
    page.locator(".jp-Notebook .jp-InputArea-editor").nth(1).click()
    page.keyboard.type(again)
    opened.run_cell(1)
    second = page.locator(".dn-form").nth(1)
    expect(second.locator(".dn-code")).to_contain_text("--primary n1-standard-4")


def test_a_form_whose_kernel_was_shut_down_takes_nothing(notebook: OPEN) -> None:
    opened = notebook("shut", starting(Layout.of("vertex", primary="n1-standard-4")))
    page = opened.page
    opened.run_cell(0)
    expect(verdict(page)).to_have_text("Everything fits")
    opened.shut_down_kernel()
    form(page).get_by_label("SageMaker").click()
    expect(form(page).locator(".dn-ended")).to_be_visible()
    expect(form(page).get_by_label("Vertex AI")).to_be_checked()
    expect(form(page).locator(".dn-code")).to_contain_text("--on vertex --primary n1-standard-4")


def test_a_form_is_saved_as_it_was_left_and_opens_so(notebook: OPEN) -> None:
    opened = notebook("kept", starting(Layout.of("vertex", primary="n1-standard-4")), "")
    page = opened.page
    opened.run_cell(0)
    expect(verdict(page)).to_have_text("Everything fits")
    form(page).get_by_role("button", name="+ Workers").click()
    field(page, "workers.machine").fill("n1-standard-8")
    expect(form(page).locator(".dn-code")).to_contain_text("--workers n1-standard-8")
    page.locator(".jp-Notebook .jp-InputArea-editor").nth(1).click()
    line = "--on vertex --primary n1-standard-4 --workers n1-standard-8"
    page.wait_for_function(IS_KEPT, arg=line)
    expect(form(page)).to_have_count(1)
    saved = str(opened.save()["cells"][0]["outputs"])
    assert line in saved
    assert "widget-view" not in saved

    opened.reload()
    expect(field(page, "workers.machine")).to_have_value("n1-standard-8")
    expect(form(page)).to_have_count(1)
    opened.shut_down_kernel()
    opened.reload()
    document = page.locator(".jp-OutputArea-output")
    expect(document).to_contain_text(f"distrain_nb.form('{line}')")
    expect(document).not_to_contain_text("not found")
    expect(form(page)).to_have_count(0)

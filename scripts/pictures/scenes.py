"""What is seen, scene by scene: the cells of a notebook, and when to take pictures of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from scripts.pictures import cells

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripts.pictures.camera import Stage

    Act = Callable[[Stage], None]

ENDS_WITHIN_S = 400


@dataclass(frozen=True)
class Shot:
    """A state: its name and what it is, and what has to be done and to be there before."""

    name: str
    about: str
    act: Act
    floats: bool = False  # above the page, until that changes its size


@dataclass(frozen=True)
class Scene:
    """A notebook: its cells, each with the shots that are taken once it was started.

    `saved` are shots of cells, by number, after the notebook was saved and its kernel is gone.
    """

    name: str
    cells: tuple[tuple[str, tuple[Shot, ...]], ...]
    saved: tuple[tuple[int, Shot], ...] = ()


def ended(stage: Stage) -> None:
    stage.opened.wait_for_cell(stage.number, ENDS_WITHIN_S)


def sees(text: str | re.Pattern[str]) -> Act:
    def act(stage: Stage) -> None:
        stage.show()
        expect(stage.cell.get_by_text(text).first).to_be_visible(timeout=ENDS_WITHIN_S * 1000)

    return act


def unfolds(heading: str) -> Act:
    """Open what is folded at first, with its charts."""

    def act(stage: Stage) -> None:
        stage.show()
        folded = stage.cell.locator("details").filter(has_text=heading)
        folded.get_by_text(heading).first.click()
        charts = folded.frame_locator("iframe").locator(".scatterlayer .trace")
        expect(charts.first).to_be_attached(timeout=ENDS_WITHIN_S * 1000)

    return act


def clicks(role: str, name: str) -> Act:
    def act(stage: Stage) -> None:
        stage.show()
        stage.cell.get_by_role(role, name=name).first.click()  # type: ignore[arg-type]

    return act


def fills(role: str, name: str, text: str) -> Act:
    def act(stage: Stage) -> None:
        stage.cell.get_by_role(role, name=name).first.fill(text)  # type: ignore[arg-type]

    return act


def brushes(name: str) -> Act:
    def act(stage: Stage) -> None:
        stage.cell.get_by_role("slider", name=name, exact=True).focus()
        for _ in range(4):
            stage.page.keyboard.press("PageUp")

    return act


def types_machine(text: str) -> Act:
    def act(stage: Stage) -> None:
        field = stage.cell.locator('input[data-path="primary.machine"]')
        field.click()
        field.fill(text)

    return act


def leaves(stage: Stage) -> None:
    stage.page.keyboard.press("Tab")
    stage.cell.locator(".dn-note").first.wait_for()


def interrupts(stage: Stage) -> None:
    stage.opened.command("notebook:interrupt-kernel")
    ended(stage)


def completes(stage: Stage) -> None:
    stage.show()
    stage.cell.locator(".cm-content").click()
    stage.page.keyboard.press("Control+End")
    stage.page.keyboard.press("Tab")
    stage.page.locator(".jp-Completer:not(.lm-mod-hidden)").wait_for()


def in_turn(*acts: Act) -> Act:
    def act(stage: Stage) -> None:
        for each in acts:
            each(stage)

    return act


def shot(name: str, about: str, *acts: Act, floats: bool = False) -> Shot:
    return Shot(name, about, in_turn(*acts or (ended,)), floats)


RUNS = Scene(
    "runs",
    (
        (cells.SLOW, (shot("waiting", "A first run, which imports", sees("no output yet")),)),
        (
            cells.train("digits", 400, 0.1),
            (
                shot("running", "A run under way", sees("step 60")),
                shot("interrupted", "Interrupted", interrupts),
            ),
        ),
        (cells.train("evening", 160, 0.01), (shot("finished", "A run that has ended"),)),
        (cells.HELPER, ()),
        (cells.FAILS, (shot("failed", "A failure, in a function of another cell"),)),
        (
            cells.TIMED,
            (
                shot(
                    "step-times",
                    "Where the time of a step goes",
                    ended,
                    unfolds("Where the time goes"),
                ),
            ),
        ),
        (cells.KILLED, (shot("killed", "A rank that was killed"),)),
        (cells.MANY, (shot("metrics", "Many metrics, in groups"),)),
        (
            cells.LOG,
            (
                shot(
                    "log",
                    "Colours, long lines wrapped, a search",
                    ended,
                    clicks("button", "Wrap"),
                    fills("searchbox", "search", "needle"),
                ),
            ),
        ),
        (cells.train("morning", 160, 0.01, rate=2.0), ()),
        ("%distrain compare evening morning", (shot("comparison", "Two runs compared"),)),
        (
            "%distrain",
            (
                shot("table", "The list of runs"),
                shot("table-open", "… with a run open", clicks("button", "Open")),
                shot("table-delete", "… asked before deleting", clicks("button", "Delete")),
            ),
        ),
        (
            "import distrain_nb\ndistrain_nb.attach('evening').results",
            (shot("results", "What came back"),),
        ),
        ("%distrain logs last", (shot("logs", "A log as text"),)),
    ),
    saved=(
        (2, shot("saved", "A saved notebook, without a kernel", sees("evening"))),
        (4, shot("saved-failure", "… of a failure", sees("failed"))),
    ),
)  # fmt: skip

PROBLEMS = Scene(
    "problems",
    (
        (cells.BAD_OPTION, (shot("bad-option", "An option that isn't there"),)),
        (cells.BAD_NAME, (shot("bad-name", "A name that nothing defines"),)),
        (cells.BACKSLASH, (shot("backslash", "Code below a backslash"),)),
        (cells.BAD_LAYOUT, (shot("bad-layout", "Machines that don't fit"),)),
        (cells.WARNED, (shot("warning", "A warning that a repair settles"),)),
    ),
)

FORMS = Scene(
    "forms",
    (
        ("%distrain form", (shot("form", "The form"),)),
        (
            cells.form(on="vertex", primary="n1-standard-8"),
            (
                shot(
                    "form-machines",
                    "Machines by what they have",
                    ended,
                    types_machine("H100"),
                    floats=True,
                ),
                shot("form-h100", "… left without choosing one", types_machine("h100"), leaves),
            ),
        ),
        (cells.POOLS, (shot("form-pools", "A form with several pools"),)),
        (cells.FINDINGS, (shot("form-findings", "A form with findings"),)),
    ),
)

TEXTS = Scene(
    "texts",
    (
        (cells.HELPER, ()),
        ("%%distrain --help", (shot("help", "Help"),)),
        ("%%distrain --help all", (shot("help-all", "All of it"),)),
        ("%distrain doctor", (shot("doctor", "What this machine lacks"),)),
        (cells.ADVISE, (shot("advise", "Which distribution suits a job"),)),
        (cells.DRY, (shot("dry-run", "A dry run on this machine"),)),
        (cells.DRY_VERTEX, (shot("dry-run-vertex", "… and on Vertex AI"),)),
        ("%distrain catalog v100 us-central1", (shot("catalog", "The catalog"),)),
        ("%distrain config", (shot("config", "The settings"),)),
        (
            "%%distrain -n 2 --",
            (shot("completion", "Options offered", completes, floats=True),),
        ),
        (
            "%%distrain --on vertex --primary a2",
            (shot("completion-machines", "… and of machines", completes, floats=True),),
        ),
    ),
)

REHEARSAL = Scene(
    "rehearsal",
    (
        (
            cells.REHEARSED,
            (
                shot("rehearsal-begins", "A rehearsal that begins", sees("starting")),
                shot("rehearsal", "… under way", sees("step 20")),
                shot("rehearsed", "… done"),
            ),
        ),
    ),
)  # fmt: skip

STUDIES = Scene(
    "studies",
    (
        (
            cells.TUNE,
            (
                shot("study-begins", "A study whose first trials run", sees("running")),
                shot("study-running", "… under way", sees(re.compile(r"\b1\d of 24 trials"))),
                shot("study", "… that has ended"),
                shot("study-brushed", "… with a brush on an axis", ended, brushes("lr from")),
                shot("study-open", "… with a trial open", ended, clicks("button", "Open")),
            ),
        ),
    ),
    saved=((0, shot("study-saved", "… in a saved notebook", sees("24 trials"))),),
)  # fmt: skip

SCENES = (TEXTS, PROBLEMS, FORMS, RUNS, STUDIES, REHEARSAL)

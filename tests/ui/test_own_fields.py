"""Fields of a backend's own: in the form, in the line that it writes, and after Tab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import CompletionContext

from distrain_nb.backends.base import Backend
from distrain_nb.backends.options import option
from distrain_nb.layout import Layout
from distrain_nb.layout.choices import Choice
from distrain_nb.magics.completion import match
from distrain_nb.ui.form import Form
from tests import guests


def partitions(layout: Layout) -> Iterable[Choice]:
    """Those with as many nodes as the layout has workers."""
    if layout.image:
        raise ConnectionError("the controller is away")
    workers = layout.workers.replicas if layout.workers else 1
    for name, nodes in (("main", 4), ("short", 2)):
        yield Choice(name, f"{name} · {nodes} nodes", nodes >= workers)


@dataclass(frozen=True)
class QueueOptions:
    partition: str = option(
        "NAME", "partition of the cluster", "", label="Partition", choices=partitions
    )
    account: str = option("NAME", "who pays", "", label="Account", setting="account")
    nice: str = option("N", "how far it gives way", "0")


class QueueBackend(Backend[QueueOptions, Any]):
    name, title, options = "queue", "the queue", QueueOptions
    reads = ("workers", "ranks_per_replica")

    def plan(self, job: Any) -> Any:
        raise NotImplementedError

    submit = status = cancel = plan  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def known(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with guests.installed(QueueBackend, tmp_path / "site", monkeypatch):
        yield


@pytest.fixture
def built(tmp_path: Path) -> Form:
    made = Form(folder=tmp_path)
    made.set("on", "queue")
    return made


def fields(built: Form) -> dict[str, tuple[str, str]]:
    shown = built.widget.view["settings"]
    return {field["path"]: (field["kind"], field["text"]) for field in shown}


def test_they_are_shown_at_their_place_alone(built: Form) -> None:
    assert fields(built) == {
        "ranks_per_replica": ("number", ""),
        "own.partition": ("combo", ""),
        "own.account": ("text", ""),
    }
    built.set("on", "local")
    assert not any(path.startswith("own.") for path in fields(built))


def test_what_stands_in_them_is_in_the_line_and_comes_back_from_it(built: Form) -> None:
    built.set("own.partition", "short ")
    built.set("own.account", "the lab")
    assert built.line == "%%distrain --on queue --partition short --account 'the lab'"
    assert [export[0] for export in built.widget.view["exports"]] == ["options", "yaml"]
    assert "--partition short" in built.widget.view["exports"][0][2]
    again = Form(built.line)
    assert (again.line, again.layout) == (built.line, built.layout)
    assert fields(again)["own.account"] == ("text", "the lab")
    built.undo()
    assert built.line == "%%distrain --on queue --partition short"
    built.set("on", "local")
    assert built.line == "%%distrain --on local"


def test_the_list_goes_by_the_layout(built: Form) -> None:
    built.layout = Layout.of("queue", workers="3")
    assert built.widget.options["own.partition"] == [
        ["main", "4 nodes", True], ["short", "2 nodes", False],
    ]  # fmt: skip
    built.set("image", "any")
    assert "own.partition" not in built.widget.options, "what can't be asked for is no failure"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%%distrain --on queue --partition ", {"main": "4 nodes", "short": "2 nodes"}),
        ("%%distrain --on queue --workers 3 --partition ", {"main": "4 nodes"}),
        ("%%distrain --on queue --workers=3 --partition=m", {"main": "4 nodes"}),
        ("%%distrain --on queue --image any --partition ", {}),
        ("%%distrain --partition ", {}),
    ],
)
def test_tab_offers_them(line: str, offered: dict[str, str]) -> None:
    context = CompletionContext(
        token="", full_text=line, cursor_position=len(line), cursor_line=0, limit=None
    )
    completions = match(context)["completions"]
    plain = {
        each.text: (each.type or "").replace("\N{NO-BREAK SPACE}", " ") for each in completions
    }
    assert plain == offered


def test_a_field_is_for_a_text() -> None:
    with pytest.raises(TypeError, match="a field of the form is for a text, not False"):
        option("", "a switch", False, label="Exclusive")

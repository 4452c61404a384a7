"""What ranks have shown, as pages get it: made safe, whoever wrote the files."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from distrain_nb.run import displays
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.saved.document import chart_bundle
from distrain_nb.worker.files.folder import DISPLAYS_FOLDER, EVENTS_FOLDER
from distrain_nb.worker.rank.displays import LARGEST_BYTES, PLOTLY

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
SCRIPT = "<script>fetch('/ran')</script>"
EVIL = f"""</iframe><img src=x onerror="fetch('/ran')">{SCRIPT}<b>seen</b>"""


def put(folder: Path, data: Any, number: int = 1, version: int = 0, more: str = "") -> Path:
    place = folder / EVENTS_FOLDER / DISPLAYS_FOLDER / "rank-0"
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"1764200000000-77-{number}-{version}{more}.json"
    path.write_text(json.dumps(data) if not isinstance(data, str) else data, encoding="utf-8")
    return path


def shown(folder: Path, data: Any) -> Any:
    path = put(folder, data)
    with path.open("a", encoding="utf-8") as file:
        file.write("" if path.read_text(encoding="utf-8").endswith("}") else "\n{}")
    (row,) = displays.rows(folder)
    return displays.display(folder, {"name": row["name"]})


def test_the_newest_of_each_is_listed_since_the_last_clear(tmp_path: Path) -> None:
    for number, version, more in ((1, 0, ""), (2, 0, "-clears"), (3, 0, ""), (3, 1, "")):
        put(tmp_path, {"text/html": f"{number} {version}"}, number, version, more)
    put(tmp_path, '{"text/html": "half', number=4)  # still being fetched
    assert [each.data["text/html"] for each in displays.displays(tmp_path)] == ["2 0", "3 1"]


@pytest.mark.parametrize(
    "name", ["", "rank-0", "../../x.json", "rank-0/../1-1-1-1.json", "rank-0/a.json", "/etc/passwd"]
)
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    put(tmp_path, {"text/html": "seen"})
    assert displays.display(tmp_path, {"name": name}) == {"note": "it is no longer shown"}


def test_links_are_no_displays(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"text/html": "secret"}', encoding="utf-8")
    path = put(tmp_path, {})
    path.unlink()
    path.symlink_to(secret)
    assert displays.displays(tmp_path) == []
    name = f"rank-0/{path.name}"
    assert "secret" not in str(displays.display(tmp_path, {"name": name}))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"image/png": EVIL}, "neither PNG, JPEG nor GIF"),
        ({"image/png": base64.b64encode(b"<svg onload=a>").decode()}, "neither PNG"),
        ({"image/png": 5}, "neither PNG"),
        ({PLOTLY: {"data": [{"type": "mesh3d"}]}}, "a chart of mesh3d isn't drawn here"),
        ({PLOTLY: {"data": 5}}, "not iterable"),
        ({PLOTLY: {"data": [5]}}, "has no attribute"),
        ({"text/html": SCRIPT}, "made by scripts"),
        ({"application/javascript": "alert(1)"}, "nothing here shows application/javascript"),
        ([1], "it can't be read"),
        ("5}", "it can't be read"),
        ("[" * 100_000 + "}", "it can't be read"),
        ({"text/html": "x" * LARGEST_BYTES}, "is no display of 4 MB at most"),
    ],
)
def test_what_a_page_must_not_show_is_a_note(tmp_path: Path, data: Any, says: str) -> None:
    answer = shown(tmp_path, data)
    assert says in answer["note"]
    assert answer.keys() <= {"note", "label"}


def test_images_tables_figures_and_texts_are_shown(tmp_path: Path) -> None:
    image = shown(tmp_path, {"image/png": PNG + "\n", "text/plain": "<Figure>"})
    assert image == {"label": "<Figure>", "image": {"form": "image/png", "data": PNG}}
    frame = pd.DataFrame({("a", "b"): ["<i>"], ("a", "c"): [2]})
    table = shown(tmp_path, {"text/html": frame._repr_html_()})["table"]  # type: ignore[operator]
    assert table["rows"][0][1] == ("a", True, 2, 1)
    assert [cell[0] for cell in table["rows"][-1]] == ["0", "<i>", "2"]
    link = {"title": {"text": '<a href="//evil">x</a>'}, "images": [{"source": "//evil"}]}
    figure = shown(tmp_path, {PLOTLY: {"data": [{"y": [1]}], "layout": link}})["figure"]
    assert figure["data"] == [{"y": [1], "type": "scatter"}]
    assert "images" not in figure["layout"] and "<a" not in str(figure)
    styled = frame.style.highlight_max(subset=[("a", "c")])._repr_html_()
    assert "background-color" in shown(tmp_path, {"text/html": styled})["page"]
    assert "<h1>a</h1>" in shown(tmp_path, {"text/markdown": "# a"})["page"]
    assert shown(tmp_path, {"text/latex": "$x$"})["text"] == "$x$"


def test_a_saved_notebook_has_them_without_anything_that_runs(tmp_path: Path) -> None:
    put(tmp_path, {"image/png": PNG, "text/plain": EVIL})
    put(tmp_path, {"text/html": EVIL}, number=2)
    put(tmp_path, {"text/html": pd.DataFrame({EVIL: [EVIL]})._repr_html_()}, number=3)  # type: ignore[operator]
    page = chart_bundle(Metrics(tmp_path))["text/html"]
    assert f'src="data:image/png;base64,{PNG}"' in page
    assert page.count('sandbox=""') == page.count("<iframe") == page.count("</iframe>") == 1
    assert "<script" not in page and "<img src=x" not in page
    assert "default-src &#x27;none&#x27;" in page, "before whatever the run has written"


def test_a_saved_notebook_keeps_the_newest(tmp_path: Path) -> None:
    for number in range(1, 31):
        put(tmp_path, {"image/png": PNG[:-4] + "A" * 100_000}, number)
    page = displays.still(tmp_path, "%distrain attach 1")
    assert len(page) < 1_100_000
    assert "the last 9 of 30 displays; all: %distrain attach 1" in page

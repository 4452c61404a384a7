"""JupyterLab doesn't take the keys of what has the focus in an output: `x` would cut the cell."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from distrain_nb.magics.help_page import page_of
from distrain_nb.magics.verbs import line_parser
from distrain_nb.run import Store
from distrain_nb.run.charts.lines import Metrics
from distrain_nb.run.log.reader import LogReader
from distrain_nb.run.pages.compare import compare
from distrain_nb.run.summary import summary_of
from distrain_nb.saved import document
from distrain_nb.saved.study_table import StudyTable
from distrain_nb.saved.tail import Tail
from distrain_nb.study.summary import summary_of as study_summary
from distrain_nb.ui.compare import ComparisonView
from tests.server.stored import stored_run
from tests.study.stored import stored_study

_ALONE = {"br", "col", "hr", "img", "input", "link", "meta", "path", "circle", "rect", "line"}


class Taken(HTMLParser):
    """Collects what can have the focus outside of what keeps its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[str] = []
        self.focusable = 0
        self._around: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        keeps = "data-lm-suppress-shortcuts" in dict(attrs)
        inside = keeps or any(kept for _, kept in self._around)
        if tag == "summary" or "tabindex" in dict(attrs):
            self.focusable += 1
            if not inside:
                self.taken.append(f"{tag} {attrs}")
        if tag not in _ALONE:
            self._around.append((tag, keeps))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in _ALONE:
            return
        while self._around and self._around.pop()[0] != tag:
            pass


def test_what_can_have_the_focus_keeps_its_keys(home: Path, tmp_path: Path) -> None:
    runs = [stored_run(Store(home), f"line {number}\n" * 300) for number in range(2)]
    for number, run in enumerate(runs):
        (run.folder / "program").mkdir()
        (run.folder / "program" / "main.py").write_text(f"print({number})\n")
    tail, metrics = Tail(), Metrics(runs[0].folder)
    for records in iter(LogReader(runs[0].folder).records, b""):
        tail.add(records)
    study = stored_study(tmp_path / "study", 5, 9)
    pages = {
        "help": page_of(line_parser())._repr_html_(),
        "comparison": ComparisonView(compare(runs)).still(),
        "run": document.run_bundle(summary_of(runs[0]), tail, metrics)["text/html"],
        "study": StudyTable(study_summary(study)).still(),
    }
    for name, page in pages.items():
        parser = Taken()
        parser.feed(page)
        assert parser.focusable, name
        assert parser.taken == [], name

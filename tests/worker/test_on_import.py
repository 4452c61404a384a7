"""Changes to modules that are made when a program imports them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from distrain_nb.worker.rank.on_import import on_import


def test_a_module_is_changed_by_everyone_who_wants_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "changed_twice.py").write_text("done = ['loaded']\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    on_import({"changed_twice": lambda module: module.done.append("first")})
    on_import({"changed_twice": lambda module: module.done.append("second")})
    import changed_twice

    assert changed_twice.done == ["loaded", "first", "second"]
    monkeypatch.delitem(sys.modules, "changed_twice")


def test_only_what_a_module_lacks_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """An AttributeError about an object of this package is a mistake here."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    on_import({"sys": lambda module: module.of_another_version})
    end = on_import({})
    with pytest.raises(AttributeError, match="no_such"):
        on_import({"sys": lambda module: end.__self__.no_such})  # type: ignore[attr-defined]

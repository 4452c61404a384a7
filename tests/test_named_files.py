"""Files that a user names, and those that a user keeps: sentences where they can't be read or
written, and nothing lost."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from distrain_nb import api
from distrain_nb.backends.remote import output_files
from distrain_nb.backends.remote.service import Stored
from distrain_nb.config import Config
from distrain_nb.errors import OptionError
from distrain_nb.findings import errors
from distrain_nb.layout import Layout
from distrain_nb.tuning.formats import read_study_file
from distrain_nb.ui.form import Form
from tests.disks import fill, small_disk
from tests.ui.test_form import said

OLD, NEW = (
    Layout.of("vertex", primary="n1-highmem-8"),
    Layout.of("sagemaker", primary="ml.m5.large"),
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system; needs root."""
    with small_disk(tmp_path / "disk", "64k") as folder:
        yield folder


def test_a_full_disk_leaves_the_saved_layout_and_is_said(disk: Path) -> None:
    path = OLD.save("five", disk)
    fill(disk)
    with pytest.raises(OptionError, match=r"can't write the layout .*five\.yaml: No space left on"):
        NEW.save("five", disk)
    assert Layout.load("five", disk) == OLD
    assert {each.name for each in disk.iterdir()} == {path.name, "filler"}


def test_the_form_says_that_a_disk_is_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    form = Form(NEW, folder=disk / "layouts")
    said(form, do="save", name="five")
    assert form.widget.files["tone"] == "bad"
    assert form.widget.files["note"].startswith("can't write the layout ")
    assert form.widget.files["note"].endswith(": Read-only file system")


def test_a_layout_behind_a_link_is_replaced_where_it_is(tmp_path: Path) -> None:
    shared = OLD.save("shared", tmp_path / "others")
    link = tmp_path / "five.yaml"
    link.symlink_to(shared)
    NEW.save("five", tmp_path)
    assert link.is_symlink() and Layout.load("shared", tmp_path / "others") == NEW


class Output:
    """An output folder with one result."""

    def objects(self, below: str) -> list[Stored]:
        return [Stored(f"{below}index.json", 4)]

    def read(self, name: str, start: int, end: int) -> bytes:
        return b"[42]"[start:end]


def test_a_result_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        named = (tmp_path / "results" / "index.json").exists()
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append(f"{'folder' if is_folder else 'file'}, {'named' if named else 'draft'}")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    output_files.results(Output(), tmp_path, lambda _: None)
    assert synced == ["file, draft", "folder, named"]
    assert (tmp_path / "results" / "index.json").read_bytes() == b"[42]"


HOMELESS, LONG = "~nobodyxyz/a", "a" * 5_000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"layout": "odd.yaml"}, "can't read the layout odd.yaml: it is not text in UTF-8"),
        (
            {"layout": "\0.yaml"},
            r"can't read the layout '\x00.yaml': no path has such characters",
        ),
        ({"layout": f"{LONG}.yaml"}, "(5,005 characters): File name too long"),
        ({"layout": "a" * 300}, "File name too long"),
        ({"layout": f"{HOMELESS}.yaml"}, f"{HOMELESS}.yaml: this machine has no such home folder"),
        ({"layout": "folder.yaml"}, "can't read the layout folder.yaml: Is a directory"),
        ({"layout": "gone.yaml"}, "there is no layout 'gone.yaml' at gone.yaml"),
        ({"data": f"x={HOMELESS}"}, f"--data x={HOMELESS}: this machine has no such home folder"),
        ({"data": f"x={LONG}"}, "(5,000 characters): File name too long"),
        ({"data": "x=a\0"}, r"--data x='a\x00': no path has such characters"),
        ({"data": f"x={HOMELESS}", "on": "vertex"}, f"--data x={HOMELESS}: this machine has no"),
        ({"data": "x=file://gone"}, "--data x=file://gone: there is no gone on this machine"),
    ],
)
def test_a_path_that_can_t_be_is_named_with_its_option(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.yaml").write_bytes(b"on: \xff")
    for folder in ("folder.yaml", "layouts"):
        Path(folder).mkdir()
    with pytest.raises(OptionError) as refused:
        api.prepare("print(1)", **options)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [(HOMELESS, "this machine has no such home folder"), (LONG, "File name too long")],
)
def test_so_is_one_to_include(home: Path, name: str, says: str) -> None:
    prepared = api.prepare("print(1)", include=name)
    (found,) = errors(prepared.findings)
    assert found.where.startswith(f"--include {name[:20]}")
    assert says in found.message


@pytest.mark.parametrize("name", [HOMELESS, "a\0", LONG])
def test_so_is_a_study_s(name: str) -> None:
    with pytest.raises(OptionError, match=r"^can't read the study "):
        read_study_file(name)


LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("idle: " + "[" * 50_000, "config.yaml is nested too deeply: expected lines such as idle"),
        ("idle: " + "9" * 5_000, "invalid idle '999"),
        (LAUGHS, "invalid a0 ['x']: expected lines such as idle: 600"),
        ("idle: [1]", "invalid idle ['1']: expected lines such as idle: 600"),
        ("warm: !!timestamp x", "invalid warm 'x': expected on or off"),
        ("idle: 2001-13-01", "invalid idle '2001-13-01': expected a number, 0 or more"),
    ],
)
def test_settings_that_can_t_be_read_are_said(home: Path, text: str, says: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(OptionError) as refused:
        Config.load()
    assert says in str(refused.value)


def test_settings_are_read_as_they_are_written(home: Path) -> None:
    written = Config(idle=1.5, warm=False, mlflow="off").changed("role", "07", {"role": ""})
    written.save()
    assert Config.load() == written
    (home / "config.yaml").write_text("mlflow: off\nwarm: yes\nwarm: on\nidle: 60\nregion:\n")
    assert Config.load() == Config(idle=60.0, mlflow="off")

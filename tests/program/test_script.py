"""Scripts and modules as programs: what runs is what Python runs, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.program import Program, capture_script, read_module, read_script
from distrain_nb.worker.rank.program import read_entry_point

if TYPE_CHECKING:
    from pathlib import Path

    from tests.program.notebooks import Place

MIB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "project"
    home.mkdir()
    return home


def put(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def as_script(folder: Path, path: str, *arguments: str, **options: object) -> Program:
    return capture_script(read_script(path, arguments, folder), limit=MIB, **options)  # type: ignore[arg-type]


def track(folder: Path, *files: str) -> None:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "add", "--force", *files], check=True)


def codes(program: Program) -> list[tuple[str, str]]:
    return [(each.code, each.where) for each in program.findings]


def test_a_script_has_what_stands_beside_it_and_not_what_is_loaded_here(
    folder: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, {
        "code/train.py": "import sys\nimport main\nfrom json_of import value\n"
        "print(main.value, value, sys.argv[1:], __file__.endswith('code/train.py'))\n41 + 1\n",
        "code/main.py": "value = 'own main'\n",
        "code/json_of.py": "value = 'beside'\n",
        "elsewhere/json_of.py": "value = 'loaded'\n",
    })  # fmt: skip
    monkeypatch.syspath_prepend(str(folder / "elsewhere"))
    __import__("json_of")
    program = as_script(folder, "code/train.py", "--lr", "0.1")
    sys.modules.pop("json_of")
    assert program.findings == ()
    done = place.start(program)
    assert done.stdout == "own main beside ['--lr', '0.1'] True\n", done.stderr


def test_a_script_may_be_called_main(folder: Path, place: Place) -> None:
    put(folder, {"main.py": "from helper import f\nprint(f())\n'not shown'\n"})
    put(folder, {"helper.py": "f = lambda: 'of main'\n"})
    program = as_script(folder, "main.py")
    done = place.start(program)
    assert done.stdout == "of main\n", done.stderr
    assert read_entry_point(place.folder / "program-1").is_script


def test_a_traceback_has_the_scripts_files_and_lines(folder: Path, place: Place) -> None:
    put(folder, {
        "code/train.py": '"""A script."""\nfrom __future__ import annotations\n\n'
        "from models.net import net\n\nif __name__ == '__main__':\n    net(None)\n",
        "code/models/__init__.py": "",
        "code/models/net.py": "def net(x):\n    return x + 1\n",
    })  # fmt: skip
    done = place.start(as_script(folder, "code/train.py"))
    lines = [line for line in done.stderr.split("\n") if line.strip(" ~^")]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "code/train.py", line 7, in <module>',
        "    net(None)",
        '  File "code/models/net.py", line 2, in net',
        "    return x + 1",
        "TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'",
    ]


@pytest.mark.parametrize(("name", "package"), [("pkg.train", "pkg"), ("pkg", "pkg"), ("top", "")])
def test_a_module_has_its_package(folder: Path, place: Place, name: str, package: str) -> None:
    said = "print(__name__, __package__)\n"
    put(folder, {
        "top.py": "import pkg.value\n" + said,
        "pkg/__init__.py": "",
        "pkg/value.py": "value = 1\n",
        "pkg/train.py": "from .value import value\n" + said,
        "pkg/__main__.py": "from .value import value\n" + said,
    })  # fmt: skip
    program = capture_script(read_module(name, (), folder), limit=MIB)
    assert program.findings == ()
    done = place.start(program)
    assert (done.stdout, done.stderr) == (f"__main__ {package}\n", "")


def test_processes_that_a_module_spawns_have_its_package_too(folder: Path, place: Place) -> None:
    put(folder, {
        "pkg/__init__.py": "",
        "pkg/value.py": "value = 3\n",
        "pkg/train.py": "import multiprocessing as m\nfrom .value import value\n"
        "def f(x):\n    from .value import value\n    return x + value, __name__\n"
        "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(f, [1]))\n",
    })  # fmt: skip
    done = place.start(capture_script(read_module("pkg.train", (), folder), limit=MIB))
    assert done.stdout == "[(4, '__mp_main__')]\n", done.stderr


def test_what_git_tracks_travels_and_what_is_imported(folder: Path) -> None:
    put(folder, {
        "train.py": "import new\nimport numpy\n",
        "new.py": "",
        "conf/a.yaml": "a: 1\n",
        "data/large.bin": "x" * 100,
        "notes.txt": "untracked\n",
        "look.ipynb": "{}",
        "gone.py": "",
    })  # fmt: skip
    track(folder, "train.py", "conf", "data", "look.ipynb", "gone.py")
    (folder / "gone.py").unlink()
    program = as_script(folder, "train.py", exclude=["data/*"], include=["notes.txt"])
    assert sorted(program.files) == ["conf/a.yaml", "new.py", "notes.txt"]
    assert [each.partition("==")[0] for each in program.requirements] == ["numpy"]
    assert program.findings == ()
    (large,) = capture_script(read_script("train.py", (), folder), limit=50).findings
    assert large.code == "capture.too-large"
    assert "data/large.bin (100 B)" in large.message


def test_what_is_included_stands_where_it_does_below_the_working_folder(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    put(other, {"words.txt": "elsewhere"})
    put(folder, {"code/train.py": "", "code/conf/a.txt": "beside", "b/c.txt": "above"})
    include = ["code/conf", "b/c.txt", str(other / "words.txt")]
    program = as_script(folder, "code/train.py", include=include)
    assert sorted(program.files) == ["b/c.txt", "code/conf/a.txt", "words.txt"]


def test_folders_that_are_called_like_packages_are_none(folder: Path) -> None:
    put(folder, {
        "numpy/torch/train.py": "import numpy\nimport torch\nimport own\n",
        "numpy/torch/own/part.py": "",
        "numpy/torch/torch/run-1.log": "what a package's runs have written",
    })  # fmt: skip
    track(folder, "numpy")
    program = as_script(folder, "numpy/torch/train.py")
    assert [each.partition("==")[0] for each in program.requirements] == ["numpy", "torch"]
    assert program.findings == ()


def test_an_import_that_is_tried_is_no_reason_to_refuse(folder: Path, place: Place) -> None:
    put(folder, {
        "train.py": "try:\n    from .net import x\nexcept ImportError:\n    from net import x\n"
        "print(x)\n",
        "net.py": "x = 1\n",
    })  # fmt: skip
    program = as_script(folder, "train.py")
    assert [str(each.severity) for each in program.findings] == ["warning"]
    assert place.start(program).stdout == "1\n"


def test_requirements_of_the_project(folder: Path) -> None:
    put(folder, {
        "train.py": "",
        "requirements.txt": "# what it needs\ntorch>=2  # for speed\n-r more.txt\n-e .\n"
        "pywin32; sys_platform == 'win32'\n",
        "more.txt": "idna==3.1 \\\n    --hash=sha256:00\nnumpy ; python_version > '3'\n"
        "-r requirements.txt\n",
        "pyproject.toml": "[project]\ndependencies = ['left-out']\n",
    })  # fmt: skip
    program = as_script(folder, "train.py", require=["scipy"])
    assert program.required == ("scipy", "torch>=2", "idna==3.1", "numpy")
    assert codes(program) == [
        ("capture.requirement", "more.txt, line 4"),
        ("capture.requirement", "requirements.txt, line 4"),
    ]
    (folder / "requirements.txt").unlink()
    assert as_script(folder, "train.py").required == ("left-out",)


def test_what_cannot_run_is_refused_with_its_place(folder: Path) -> None:
    put(folder, {"a.py": "x = (\n", "b.py": "\nfrom .net import net\n", "c.ipynb": "{}"})
    assert codes(as_script(folder, "a.py")) == [("capture.syntax-error", "a.py, line 1")]
    assert ("capture.relative-import", "b.py, line 2") in codes(as_script(folder, "b.py"))
    (folder / "d.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(OptionError, match=r"d\.py can't be read as Python"):
        as_script(folder, "d.py")
    for read, name, why in (
        (read_script, "c.ipynb", "is a notebook"),
        (read_script, "bb.py", "did you mean b.py"),
        (read_module, "numpy", "an installed package's"),
        (read_module, "pkg.none", "neither pkg/none.py nor pkg/none/__main__.py"),
    ):
        with pytest.raises(OptionError, match=why):
            read(name, (), folder)

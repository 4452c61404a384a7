"""Texts that were written to do harm, or by chance: a layout, or a short sentence, and soon."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports, read_any
from distrain_nb.layout.rules import check
from distrain_nb.layout.yaml_reading import yaml_texts
from distrain_nb.ui.form import Form
from distrain_nb.ui.form.editing import Editing, History
from distrain_nb.ui.form.view import options, view
from tests.fuzzing import mutated, rounds
from tests.hostile import LONGEST_SENTENCE, refused
from tests.layout import documents


def laughs(levels: int, start: str = "workerPoolSpecs") -> str:
    lines = ["l0: &l0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join([*lines, f"{start}: *l{levels - 1}"])


def laughing_python(levels: int) -> str:
    lines = ["a0 = ['lol'] * 1", "a0 = ['lol', 'lol']"]
    lines += [f"a{n} = [{', '.join([f'a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join([*lines, f"E(instance_type=a{levels - 1}, instance_count=1)"])


CRUEL = {
    "aliases": laughs(9),
    "aliases in a layout": laughs(9, "on: vertex\nworkers"),
    "aliases in a file": f"cat > c.yaml <<EOF\n{laughs(9)}\nEOF\ngcloud ai custom-jobs create",
    "an alias in itself": "workerPoolSpecs: &a [*a]",
    "an alias in its own mapping": "workerPoolSpecs: &a {b: {c: *a}}",
    "deep YAML": "workerPoolSpecs: " + "[" * 40_000,
    "deep YAML in blocks": "".join(f"{' ' * n}a:\n" for n in range(400)),
    "deep JSON": "[" * 50_000,
    "deep mappings": '{"workerPoolSpecs":' * 4_000,
    "deep and whole": '{"workerPoolSpecs":' + "[" * 45_000 + "]" * 45_000 + "}",
    "deep Python": "instance_type=" + "(" * 40_000,
    "deep signs": "E(instance_type=" + "-" * 40_000 + "1)",
    "deep attributes": "E" + ".a" * 40_000 + "(instance_type=1)",
    "names of names": laughing_python(9),
    "lists that double": "a = [1]\n"
    + "a += a\n" * 2_000
    + "E(instance_type=a, instance_count='x')",
    "texts that double": "a = 'x'\n" + "a += a\n" * 2_000 + "E(instance_count='y', role=a)",
    "a mapping in itself": "a = {}\na['a'] = a\nE(instance_count=1, hyperparameters=a)",
    "a list in itself": "a = []\na.append(a)\nworker_pool_specs = a",
    "many spaces in Python": "instance_type=" + " " * 90_000 + "\n!",
    "a long name in Python": "x" * 90_000 + "(instance_type=\n!",
    "deep conditions": "".join(f"{' ' * n}for a in b:\n" for n in range(90))
    + " " * 90
    + "E(instance_count='x')",
    "open files": "gcloud ai custom-jobs create\n" + "<<EOF\n" * 15_000,
    "open files of many names": "gcloud ai custom-jobs create\n"
    + "".join(f"<<E{n}\n" for n in range(9_000)),
    "an open file": "cat <<'EOF'\nworkerPoolSpecs: []\ngcloud ai custom-jobs create",
    "open strings": '{"' + '\\"' * 45_000,
    "empty lines": "a" + "\n" * 90_000 + "b",
    "spaces": "a\n" + " " * 90_000 + "b",
    "quotes": "gcloud ai custom-jobs create " + "'" * 89_999,
    "too long": "workerPoolSpecs: []\n" + "#" * 5_000_000,
    "a long scalar": json.dumps({"workerPoolSpecs": [{"machineSpec": "x" * 90_000}]}),
    "a long number": json.dumps({"workerPoolSpecs": [{"replicaCount": "9" * 90_000}]}),
    "a NUL": "instance_type=1\0",
    "half a character": "workerPoolSpecs: \ud800",
    "half a character in Python": "instance_type='\ud800",
    "no place to stand": "instance_type=\\",
    "a group of nothing": "E(instance_groups=[InstanceGroup()])",
    "a group of something else": "E(instance_groups=[InstanceGroup(size=1)])",
    "a group that is a number": "E(instance_groups=1)",
    "a long line": "--on vertex --primary " + "a" * 1_000_000,
    "a line of digits": "--on vertex --primary " + "9" * 19_000 + "*a",
    "a pool of a long number": f"--on vertex --primary {'9' * 4_000}*n1-standard-4",
    "open brackets in a line": "--on vertex --tune " + "[" * 19_000,
    "open quotes in a line": "--on vertex --tune '\"" + '\\"' * 9_000 + "'",
    "an open quote in a line": "%%distrain --on '" + '"' * 19_000,
    "digits in a line": "--on vertex --tune x=1.." + "9" * 19_000,
    "a long time in a line": "--on vertex --timeout " + "9" * 4_299 + "d",
}


@pytest.mark.parametrize("text", CRUEL.values(), ids=CRUEL)
@pytest.mark.timeout(60)
def test_cruel_texts_are_refused_with_a_sentence(text: str) -> None:
    refused(read_any, text)


@pytest.mark.parametrize("text", CRUEL.values(), ids=CRUEL)
@pytest.mark.timeout(60)
def test_the_form_refuses_each_of_them(tmp_path: Any, text: str) -> None:
    form = Form(folder=tmp_path)
    refused(form.paste, text)
    form.widget._handle_custom_msg({"page": "p", "number": 1, "do": "paste", "text": text}, [])
    assert form.widget.heard == ["p", 1]
    assert form.widget.files["tone"] == "bad"
    assert len(form.widget.files["note"]) < LONGEST_SENTENCE


@pytest.mark.timeout(60)
def test_a_line_that_is_too_long_is_not_split() -> None:
    text = CRUEL["a long line"]
    assert refused(Layout.from_line, text).endswith("lines of options are read up to 20,000")


def test_the_form_answers_even_where_it_is_wrong_itself(tmp_path: Any) -> None:
    form = Form(folder=tmp_path)
    form.widget._handle_custom_msg({"page": "p", "number": 1, "do": "no such thing"}, [])
    assert form.widget.heard == ["p", 1]
    assert "KeyError" in form.widget.files["note"]


def test_aliases_of_a_usual_size_are_read() -> None:
    text = """\
workerPoolSpecs:
- &pool {machineSpec: &gpus {machineType: n1-highmem-8}, containerSpec: {imageUri: gcr.io/p/i}}
- {machineSpec: *gpus, replicaCount: '3', containerSpec: {imageUri: gcr.io/p/i}}
"""
    found = read_any(text).layout
    assert (found.primary, found.workers) == (
        Layout.of("vertex", primary="n1-highmem-8").primary,
        Layout.of("vertex", workers="3*n1-highmem-8").workers,
    )


def test_files_of_a_command_may_have_any_name() -> None:
    for mark, end in (("'EOF'", "EOF"), ('"YAML"', "YAML"), ("-END", "END"), (" X", "X")):
        command = f"cat > c.yaml <<{mark}\nworkerPoolSpecs:\n- {{replicaCount: 4}}\n{end} \n"
        found = read_any(command + "gcloud ai custom-jobs create --region=us-east1 --config=c.yaml")
        assert found.layout.primary is not None
        assert (found.layout.primary.replicas, found.layout.region) == (4, "us-east1")


LAYOUTS = (
    Layout.of("vertex", primary="n1-highmem-96+8*V100", workers="4*n1-highmem-96+8*V100",
              reducers="16*n1-highcpu-16", scheduling="SPOT", timeout="2h", region="us-central1"),
    Layout.of("sagemaker", workers="2*ml.p4d.24xlarge", framework="pytorch-2.4", launcher="mpi",
              timeout="1h", max_wait="2h", checkpoint="s3://b/c"),
    Layout.of("ai-platform", primary="n1-standard-4", workers="2*n1-standard-4",
              servers="1*n1-standard-4", region="us-central1"),
)  # fmt: skip
SEEDS = [text for layout in LAYOUTS for text in exports(layout).values()] + [
    value for name, value in vars(documents).items() if name.isupper()
]
PIECES = [
    *"{}[]:,'\"\\#~=+\n\0é\ud800",
    *("- ", "? ", "| \n", "&a ", "*a", "!!set ", "<<: *a\n", "%YAML 9\n", "---\n", "null", "true"),
    *("9" * 30, "-1", "1e999", "nan", "<<EOF\n", "\nEOF\n", "--", "instance_groups="),
    *("InstanceGroup(", "{[1]: 2}", "lambda: 0", "*x", "**x", "f'{x}'"),
]


def test_what_chance_writes_raises_only_a_refusal() -> None:
    for chance in rounds(1, 250):
        text = mutated(chance, SEEDS, PIECES)
        with contextlib.suppress(OptionError):
            layout = read_any(text).layout
            exports(layout)
            check(layout)
            view(History(Editing(layout)), 400_000_000)
            options(layout)


def test_layouts_as_files_by_chance() -> None:
    seeds = [layout.to_yaml() for layout in LAYOUTS]
    for chance in rounds(2, 5_000):
        with contextlib.suppress(OptionError):
            layout = Layout.from_yaml(mutated(chance, seeds, PIECES))
            assert Layout.from_yaml(layout.to_yaml()) == layout
        with contextlib.suppress(OptionError):
            yaml_texts(mutated(chance, seeds, PIECES))


def test_options_by_chance() -> None:
    seeds = [str(layout) for layout in LAYOUTS]
    for chance in rounds(3, 5_000):
        with contextlib.suppress(OptionError):
            layout = Layout.from_line(mutated(chance, seeds, [*PIECES, "--on ", "*", "+", "auto"]))
            assert Layout.from_line(str(layout)) == layout

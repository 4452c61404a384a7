"""Exports that are pasted into a shell: no value of a layout is run there."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from distrain_nb.errors import OptionError
from distrain_nb.layout import Layout
from distrain_nb.layout.formats import exports_of

SHELLS = ("vertex-gcloud", "ai-platform-gcloud", "slurm-sbatch")
LAYOUTS = {
    "vertex": "--on vertex --primary n1-standard-8+2*NVIDIA_TESLA_T4 --workers 2*n1-standard-8",
    "vertex with a file": "--on vertex --primary n1-standard-8 --timeout 2h",
    "ai-platform": "--on ai-platform --primary n1-standard-8+1*T4 --workers 2*n1-standard-8",
    "ai-platform with a file": "--on ai-platform --primary n1-standard-8 --timeout 2h",
    "slurm": "--on slurm --workers 2*gpu:2",
}
PAYLOADS = ("x; touch PLANTED", "$(touch PLANTED)", "`touch PLANTED`", "x' ; touch PLANTED ; '",
            'x" ; touch PLANTED ; "', "x\ntouch PLANTED", "x\\\ntouch PLANTED",
            "EOF\ntouch PLANTED", "x #", "x & touch PLANTED", "x | touch PLANTED",
            "x > PLANTED")  # fmt: skip
FIELDS = ("region", "image", "tier", "scheduling")
COMMANDS = "".join(
    f"{name}() {{ printf '%s\\n' \"$@\" > words; }}\n"
    for name in ("gcloud", "srun", "scontrol", "head")
)


def with_payload(layout: Layout, field: str, payload: str) -> Layout:
    """Not by the line, which refuses some: another program may have written a layout's file."""
    if field in FIELDS:
        return replace(layout, **{field: payload})
    pools = {
        role.value: replace(pool, **{field: payload})
        for role, pool in layout.pools()
        if field != "accelerator" or pool.accelerator_count
    }
    return layout.edited(pools)


def shell_texts(layout: Layout) -> Iterator[tuple[str, str]]:
    """Each export for a shell. A refusal is one as good, if it comes before any text."""
    for form in exports_of(layout.on):
        if form.name in SHELLS:
            with contextlib.suppress(OptionError):
                yield form.name, form.text(layout)


@pytest.mark.parametrize("line", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("field", [*FIELDS, "machine", "accelerator"])
def test_a_shell_runs_nothing_of_a_value(line: str, field: str, tmp_path: Path) -> None:
    tried = 0
    for payload in PAYLOADS:
        layout = with_payload(Layout.from_line(line), field, payload)
        for name, text in shell_texts(layout):
            tried += 1
            command = ["bash", "-c", COMMANDS + text]
            subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
            assert not (tmp_path / "PLANTED").exists(), (name, field, payload, text)
            if field == "region" and name.endswith("-gcloud"):
                assert payload in (tmp_path / "words").read_text()
    assert tried

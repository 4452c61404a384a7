"""A run that trains wrongly says so, with its line; a healthy one says nothing."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.trained_wrong_cells import CASES, PROGRAMS, Case
from distrain_nb import api
from distrain_nb.api.source import Source
from distrain_nb.errors import OptionError, RunFailed
from distrain_nb.findings import Finding
from distrain_nb.program import Cell, Notebook
from distrain_nb.run import Run
from distrain_nb.worker.facts.deviations import CODES
from distrain_nb.worker.facts.reader import FactReader
from distrain_nb.worker.files.folder import EVENTS_FOLDER

BYPASSED = next(case for case in CASES if case.name == "module-called-by-itself")
OF_TORCH = [c for c in CASES if c.style in ("plain", "by hand") and not c.proves]


def start(text: str, **options: object) -> Run:
    source = Source(Cell("Cell In[7]", text), Notebook({}, (), Path.cwd()))
    given = {"wait": False, "ranks_per_replica": 2, **options}
    return api.submit(source, **given)  # type: ignore[call-overload, no-any-return]


def ended(run: Run) -> Run:
    with suppress(RunFailed):
        run.wait(120)
    return run


def about_ranks(run: Run) -> list[Finding]:
    return [finding for finding in run.findings if finding.code in CODES]


@pytest.mark.parametrize("case", OF_TORCH, ids=lambda case: case.name)
def test_a_fault_is_named_with_its_line(case: Case, home: Path) -> None:
    lines = case.faulty.splitlines()
    here = next(number for number, line in enumerate(lines, 1) if "# HERE" in line)
    found = about_ranks(ended(start(case.faulty)))
    places = {finding.code: finding.where for finding in found}
    assert places.get(case.codes[0]) == f"Cell In[7], line {here}", found


@pytest.mark.parametrize("style", ["plain", "by hand"])
def test_a_healthy_program_says_nothing(style: str, home: Path) -> None:
    run = ended(start(PROGRAMS[style], ranks_per_replica=3))
    assert run.state == "succeeded" and run.findings == () and not run.status.note
    facts = FactReader(run.folder / EVENTS_FOLDER).read()
    kinds = {fact["kind"] for noted in facts.values() for fact in noted}
    assert len(facts) == 3 and {"weights", "samples", "collectives", "end"} <= kinds
    assert "trouble" not in kinds


def test_it_is_said_beside_the_state_in_the_log_and_in_findings(home: Path) -> None:
    run = ended(start(BYPASSED.faulty))
    sentence = "Cell In[7], line 22: gradients were not exchanged in 36 of 36 steps"
    assert run.state == "succeeded" and sentence in run.status.note
    (finding,) = run.findings
    assert finding.code == "gradients.bypassed" and "Call the wrapped model" in finding.message
    warnings = [line for line in run.logs().splitlines() if "distrain: warning" in line]
    assert len(warnings) == 1 and warnings[0].endswith("(gradients.bypassed)")
    assert warnings[0].startswith("[service]")


def test_a_code_is_ignored(home: Path) -> None:
    run = ended(start(BYPASSED.faulty, ignore=["gradients.bypassed"]))
    assert run.findings == () and not run.status.note and "warning" not in run.logs()


def test_an_unknown_code_is_refused(home: Path) -> None:
    with pytest.raises(OptionError, match=r"--ignore 'gradient.bypassed'.*gradients\.bypassed"):
        start("pass", ignore=["gradient.bypassed"])


def test_weights_that_are_compared_at_the_end_are_no_exchange(home: Path) -> None:
    compares = """
every = [torch.zeros(8, 16) for _ in range(world)]
dist.all_gather(every, net[0].weight.detach().T.contiguous())
"""
    (finding,) = about_ranks(ended(start(BYPASSED.faulty + compares)))
    assert finding.code == "gradients.bypassed"


@pytest.mark.parametrize("pause", ["", "        __import__('time').sleep(1)\n"])
def test_strict_ends_the_run(home: Path, pause: str) -> None:
    text = BYPASSED.faulty.replace(
        "        if number == stops:", f"{pause}        if number == stops:"
    )
    run = ended(start(text, strict=True))
    assert run.state == "failed"
    assert run.status.error.startswith("stopped by --strict: Cell In[7], line 22: gradients were")
    assert ("loss" in run.logs()) == (not pause)  # while it runs, or when it has ended


def test_nothing_is_recorded_of_one_rank_or_if_it_is_turned_off(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = ended(start("import torch\ntorch.ones(1)", ranks_per_replica=1))
    monkeypatch.setenv("DISTRAIN_FACTS", "0")
    off = ended(start(BYPASSED.faulty))
    assert FactReader(alone.folder / EVENTS_FOLDER).read() == {}
    assert FactReader(off.folder / EVENTS_FOLDER).read() == {} and off.findings == ()


def test_a_wrapped_model_that_is_compiled_is_followed(home: Path) -> None:
    wrapped = "torch.compile(DistributedDataParallel(net), backend='eager')"
    run = ended(start(PROGRAMS["plain"].replace("DistributedDataParallel(net)", wrapped)))
    assert run.state == "succeeded" and run.findings == ()
    for noted in FactReader(run.folder / EVENTS_FOLDER).read().values():
        (end,) = [fact for fact in noted if fact["kind"] == "end"]
        assert end["exchanges"] == end["steps"] == {"module 0": 36}


def test_the_program_sees_nothing_of_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws, modes, hooks and pickles of a program are what they are without the record."""
    text = """\
import io, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode
dist.init_process_group("gloo")
class Counting(TorchDispatchMode):
    calls = 0
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        Counting.calls += 1
        return function(*args, **(kwargs or {}))
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
inner = io.BytesIO()
for step in range(4):
    model(torch.ones(2, 4)).sum().backward()
    with Counting():
        optimizer.step()
torch.save(model.module, inner)
hooks = len(model.module._forward_pre_hooks)
print("SEEN", Counting.calls, torch.rand(1).item(), len(inner.getvalue()), hooks, flush=True)
"""
    seen = []
    for facts in ("1", "0"):
        monkeypatch.setenv("DISTRAIN_FACTS", facts)
        run = ended(start(text))
        assert run.state == "succeeded", run.status.error
        seen.append(sorted(line for line in run.logs(0).splitlines() if "SEEN" in line))
    assert seen[0] and seen[0] == seen[1]


def test_a_collective_in_a_graph_of_the_compiler_stays_in_it(home: Path) -> None:
    run = ended(
        start("""\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
@torch.compile(backend="eager", fullgraph=True)
def summed(tensor):
    tensor = tensor + 1
    dist.all_reduce(tensor)
    return tensor
print("SUM", summed(torch.ones(1)).item())
""")
    )
    assert run.state == "succeeded" and run.logs().count("SUM 4.0") == 2, run.status.error

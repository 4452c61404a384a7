"""`%distrain advise`: which distribution, and what a training cell lacks for it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distrain_nb import api
from distrain_nb.errors import OptionError
from distrain_nb.findings import Finding
from distrain_nb.layout import Layout, Pool
from distrain_nb.layout.advice import Advice, advise
from distrain_nb.layout.case import Case, case_of
from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.traffic import size
from distrain_nb.program import Cell
from distrain_nb.program.advice import findings, findings_in
from distrain_nb.program.notebook.cells import notebook_of
from distrain_nb.repairs import head_lines
from distrain_nb.run.metrics.step_times import step_times

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


_FIELDS = ("model_bytes", "gpus_per_instance", "instances", "network_gbps", "framework", "step_s")


@dataclass(frozen=True)
class Answer:
    """The advice, where a case was given, and the findings about a cell or file."""

    advice: Advice | None
    script: str
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        parts = [str(self.advice)] if self.advice else []
        if self.script:
            lines = [f"  {finding}" for finding in self.findings]
            parts.append("\n".join([self._heading(), *lines]))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{escape(str(finding))}</li>" for finding in self.findings)
        script = f"<p><b>{escape(self._heading())}</b></p><ul>{rows}</ul>" if self.script else ""
        return (self.advice._repr_html_() if self.advice else "") + script

    def _heading(self) -> str:
        return f"{self.script}: {'look at' if self.findings else 'nothing is missing'}"


def answer(options: argparse.Namespace, shell: InteractiveShell) -> Answer:
    """Raise OptionError for a figure that can't be, or a script that is not there."""
    figures = {
        name: getattr(options, name) for name in _FIELDS if getattr(options, name) is not None
    }
    measured, source = _measured(options.run) if options.run else ({}, ())
    figures = {**measured, **figures}
    script, problems = _looked_at(options.script, shell)
    about_case = figures or options.workers or not script
    advice = advise(_case(options.workers, figures)) if about_case else None
    if advice:
        advice = replace(advice, reasons=(*source, *advice.reasons))
    return Answer(advice, script, problems)


def _measured(name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the figures that a run has measured, and where they come from. Raises OptionError for
    a run that has measured no steps."""
    run = api.attach(name)
    times = step_times(run.folder)
    if not times.ranks:
        raise OptionError(
            f"run {run.id} has no step times: its program took no steps that were seen; "
            "give --step and --model-size instead"
        )
    figures: dict[str, Any] = {"step_s": times.own_s}
    source = f"measured in run {run.id}: {times.own_s * 1000:,.0f} ms a step without the exchange"
    if times.gradient_bytes:  # which only PyTorch's optimizers tell
        figures.update(model_bytes=float(times.gradient_bytes), framework="pytorch")
        source += f", {size(times.gradient_bytes)} of gradients"
    return figures, (source,)


def _case(workers: str | None, figures: dict[str, Any]) -> Case:
    """Make the case of a pool: instances of SageMaker, else Vertex AI's primary replica and its
    workers."""
    pool, framework = Pool.parse(workers) if workers else None, figures.pop("framework", None)
    machine = (pool and pool.machine) or ""
    if machine.startswith("ml."):
        layout = Layout.of("sagemaker", workers=pool, framework=framework)
    else:
        pool = pool and _equipped(pool)
        primary = replace(pool, replicas=1) if pool else None
        rest = replace(pool, replicas=pool.replicas - 1) if pool and pool.replicas > 1 else None
        layout = Layout.of("vertex", primary=primary, workers=rest, framework=framework)
    case = case_of(layout)
    return replace(case, layout=case.layout if machine else None, **figures)


def _equipped(pool: Pool) -> Pool:
    """Add the GPUs that its machines come with, which Vertex AI wants written down."""
    row = current().machines.get(pool.machine or "")
    if pool.accelerator or row is None or not row.builtin_accelerator:
        return pool
    count = row.builtin_accelerator_count or 0
    return replace(pool, accelerator=row.builtin_accelerator, accelerator_count=count)


def _looked_at(script: str | None, shell: InteractiveShell) -> tuple[str, tuple[Finding, ...]]:
    """Read the script or the cells, and return what was read with its findings."""
    if script and not script.isdecimal():
        return script, findings(_text(Path(script)), script)
    notebook = notebook_of(shell)
    cells = {cell.label: cell for cell in notebook.cells}
    if script:
        cell = cells.get(f"Cell In[{script}]")
        if cell is None:
            raise OptionError(f"invalid --script {script}: no cell In[{script}] has been executed")
    else:
        cell = next((cell for cell in reversed(notebook.cells) if _is_ours(cell)), None)
        if cell is None:
            return "", ()
    program = api.program(api.Source(cell, notebook, first_line=_first_line(cell)))
    return cell.label, findings_in(program.main, program.segments)


def _is_ours(cell: Cell) -> bool:
    return cell.source.startswith("%%distrain")


def _first_line(cell: Cell) -> int:
    return head_lines(cell.source) + 1 if _is_ours(cell) else 1


def _text(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"invalid --script {str(path)!r}: {error}") from None

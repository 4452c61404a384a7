"""What PyTorch's own checks say of the faults of `trained_wrong_cells.py`.

`python -m benchmarks.trained_wrong_rivals [LEVEL [NAME…]]` runs each fault, and its healthy twin,
by `torchrun` with two ranks and `TORCH_DISTRIBUTED_DEBUG` (default: DETAIL). It prints how each
ended, and whether the fault's output has the line that the cell marks with `# HERE`. The last line
is JSON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.trained_right_cells import twin
from benchmarks.trained_wrong_cells import CASES

WITHIN_S = 90
# What PyTorch says of every program, and torchrun of every failure.
_CHATTER = re.compile(r"destroy_process_group|OMP_NUM_THREADS|elastic|ChildFailed|site-packages")


def ended(name: str, text: str, level: str, folder: Path) -> tuple[str, str]:
    """Return how a program has ended, and what it wrote."""
    script = folder / f"{name}.py"
    script.write_text(text)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "TORCH_DISTRIBUTED_DEBUG": level, "KERAS_BACKEND": "torch"}
    try:
        done = subprocess.run(
            [*command, str(script)], env=environment, timeout=WITHIN_S, text=True, cwd=folder,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return "hung", (error.stdout or b"").decode()
    crashed = re.search(r"SIG[A-Z]+", done.stdout)
    failed = crashed[0] if crashed else "failed"
    return "succeeded" if done.returncode == 0 else failed, done.stdout


def main() -> None:
    level, chosen = sys.argv[1] if sys.argv[1:] else "DETAIL", sys.argv[2:]
    cases = [c for c in CASES if c.style != "Horovod" and (not chosen or c.name in chosen)]
    named = stopped = well = 0
    with TemporaryDirectory() as folder:
        for case in cases:
            state, text = ended(case.name, case.faulty, level, Path(folder))
            healthy, _ = ended(f"well-{case.name}", twin(case), level, Path(folder))
            well += healthy == "succeeded"
            lines = case.faulty.splitlines()
            here = next(number for number, line in enumerate(lines, 1) if "# HERE" in line)
            right = f'{case.name}.py", line {here}' in text
            named, stopped = named + right, stopped + (state != "succeeded")
            said = [x for x in text.splitlines() if re.search("[Ee]rror|[Ww]arn", x)]
            print(
                f"{'yes' if right else 'NO':3} {case.style}: {case.name} ({state}; twin {healthy})"
            )
            for line in [x for x in said if not _CHATTER.search(x)][:2]:
                print(f"      {line[:160]}", flush=True)
    print(
        json.dumps(
            {"line_named": named, "stopped": stopped, "twins_succeeded": well, "of": len(cases)}
        )
    )


if __name__ == "__main__":
    main()

"""A program's steps as a world of one rank, on the batches of all ranks (`proving.py`).

A fork of rank 0 runs it, or `python -m distrain_nb.worker.rank.alone RUN_FOLDER FILE`. It reads
its own loader too, for the structure of a batch, and steps with the settings that the world had:
a schedule goes by the number of steps, of which one rank has more.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, Set

from distrain_nb.worker.files.folder import PROGRAM_FOLDER
from distrain_nb.worker.machine import system, threads
from distrain_nb.worker.rank import determined, program, tracebacks
from distrain_nb.worker.rank.batches import rebuilt
from distrain_nb.worker.rank.on_import import on_import
from distrain_nb.worker.rank.steps_followed import (
    AGAIN,
    Key,
    StepsFollowed,
    load,
    parameters,
    save,
)


class StepsOfOne(StepsFollowed):
    """The steps of one rank that gets the batches of all."""

    def __init__(self, path: Path) -> None:
        self._record: Dict[str, Any] = load(path)
        super().__init__(self._record["steps"])
        self._path = path
        self._stepped: Set[int] = set()

    def batch(self, key: Key, fetch: Callable[[], Any]) -> Any:
        self._impose()
        if self._record["ends"].get(key[0], key[1] + 1) <= key[1]:
            raise StopIteration
        batch, parts = fetch(), self._record["batches"].get(key)
        return batch if parts is None else rebuilt(batch, iter(parts))

    def after_backward(self) -> None:
        """Have gradients off by a rounding, the second time; small ones as if they were a tenth of
        the largest, from which their errors come."""
        if self._path.name != AGAIN:
            return
        torch: Any = sys.modules["torch"]
        tensors = [t for o in self.optimizers if o is not None for t in parameters(o)]
        grads = [t.grad for t in tensors if t.grad is not None and t.grad.layout is torch.strided]
        with torch.no_grad():
            sizes = [float(grad.abs().double().square().mean().sqrt()) for grad in grads]
            unit = determined.rounding(tensors)
            for grad, size in zip(grads, sizes):
                numbers = torch.arange(grad.numel(), device=grad.device, dtype=torch.float32)
                off = unit * max(size, 0.1 * max(sizes)) * numbers.add_(0.5).mul_(1.9).sin_()
                grad.add_(off.reshape(grad.shape).to(grad.dtype))

    def before_step(self, number: int, optimizer: Any) -> None:
        self._stepped.add(number)
        for group, values in zip(optimizer.param_groups, self._record["settings"][len(self.rows)]):
            group.update(values)

    def end(self) -> None:
        self.leave({"rows": self.rows})

    def leave(self, result: Dict[str, Any]) -> None:
        """Write the result, and end this process with all that the program has left running."""
        save(result, self._path.with_name(f"{self._path.name}-rows"))
        os._exit(0)

    def _impose(self) -> None:
        """Give optimizers that have not stepped the weights that the world has begun with."""
        torch: Any = sys.modules["torch"]
        for number, optimizer in enumerate(self.optimizers):
            state = self._record["states"].get(number)
            if optimizer is None or state is None or number in self._stepped:
                continue
            with torch.no_grad():
                for tensor, value in zip(parameters(optimizer), state):
                    if not torch.equal(tensor.detach().cpu(), value):
                        tensor.copy_(value)


def _accept_fewer_devices(module: Any) -> None:
    """Lightning refuses a world of another size than its trainer has been told."""
    module.TorchElasticEnvironment.validate_settings = lambda *_, **__: None


def main(folder: Path, path: Path) -> None:
    """Run the program of that folder in a process of its own."""
    system.die_with_parent()
    program.add_packages()
    program.prepare()
    run(folder, path)


def run(folder: Path, path: Path) -> None:
    """Run the program of that folder to the last step that the file has, and end this process."""
    number = os.environ.get(threads.VARIABLE, "")
    if number.isdigit():
        threads.limit(int(number))
    determined.install(determined.SEED)
    import torch  # noqa: F401  # the record has tensors

    environments = "fabric.plugins.environments.torchelastic"
    on_import(
        {
            f"lightning.{environments}": _accept_fewer_devices,
            f"lightning_{environments}": _accept_fewer_devices,
        }
    )
    replay = StepsOfOne(path)
    replay.install()
    try:
        program.run_in(ModuleType("__main__"), folder / PROGRAM_FOLDER)
    except BaseException as error:
        tracebacks_text = tracebacks.format_exception(error)
        print(tracebacks_text, file=sys.stderr)
        replay.leave({"error": tracebacks.headline(error)})
    replay.leave({"error": f"it has ended after {len(replay.rows)} steps"})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

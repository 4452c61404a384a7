"""Hooks by which Keras, Lightning and rich say how far a program is (`metrics/progress.py`).

Their own bars don't do: rich draws none into a pipe, Lightning's doesn't know the last epoch, and
Keras may be told to be silent.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

from distrain_nb.worker.metrics.progress import VARIABLE, report
from distrain_nb.worker.rank.on_import import on_import


def install() -> None:
    """Hear of progress in this rank, if it is to report."""
    if os.environ.get(VARIABLE):
        on_import(
            {
                "keras.src.callbacks.callback_list": _change_keras,
                "lightning.pytorch.loops.training_epoch_loop": _change_lightning,
                "pytorch_lightning.loops.training_epoch_loop": _change_lightning,
                "rich.progress": _change_rich,
            }
        )


def _followed_by(after: Callable[..., None], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with another called after it, whose errors never reach the program."""

    @functools.wraps(function)
    def both(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        try:
            after(*arguments, **named)
        except Exception:  # another version: then nothing is known of progress
            pass
        return result

    return both


def _change_keras(module: Any) -> None:
    """Epochs come with their number; the steps of one are unknown in the first of some datasets."""
    lists = module.CallbackList

    def batch_ended(self: Any, batch: int, *_: Any, **__: Any) -> None:
        steps, epochs = self.params.get("steps"), self.params.get("epochs")
        if steps:
            epoch = getattr(self, "_distrain_epoch", 0)
            report("Keras", epoch * steps + batch + 1, epochs * steps)

    def epoch_began(self: Any, epoch: int, *_: Any, **__: Any) -> None:
        self._distrain_epoch = epoch

    def epoch_ended(self: Any, epoch: int, *_: Any, **__: Any) -> None:
        if not self.params.get("steps"):
            report("Keras", epoch + 1, self.params["epochs"], "epochs")

    lists.on_train_batch_end = _followed_by(batch_ended, lists.on_train_batch_end)
    lists.on_epoch_begin = _followed_by(epoch_began, lists.on_epoch_begin)
    lists.on_epoch_end = _followed_by(epoch_ended, lists.on_epoch_end)


def _change_lightning(module: Any) -> None:
    loop = module._TrainingEpochLoop

    def advanced(self: Any, *_: Any) -> None:
        trainer = self.trainer
        batches, steps, epochs = trainer.num_training_batches, trainer.max_steps, trainer.max_epochs
        if steps and steps > 0:
            report("Lightning", trainer.global_step, steps)
        elif epochs and epochs > 0 and batches != float("inf"):
            done = trainer.current_epoch * batches + self.batch_idx + 1
            report("Lightning", done, epochs * batches)

    loop.advance = _followed_by(advanced, loop.advance)


def _change_rich(module: Any) -> None:
    """Count by the outermost bar, which is the first of a `Progress`."""
    bars = module.Progress

    def moved(self: Any, *_: Any, **__: Any) -> None:
        tasks = self.tasks
        first = next((task for task in tasks if not task.finished), tasks[-1])
        if first.total:
            report("rich", float(first.completed), float(first.total))

    bars.update = _followed_by(moved, bars.update)
    bars.advance = _followed_by(moved, bars.advance)

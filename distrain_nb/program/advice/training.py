"""What the checks of all frameworks look for: optimizers, what one rank saves alone, and how a note
is made."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.findings import Fix, Severity
from distrain_nb.program.advice.flow import RANK, Flow
from distrain_nb.program.advice.reading import given, is_constant, keyword, last

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code

_OPTIMIZERS = {
    *("SGD", "Adam", "AdamW", "Adamax", "NAdam", "Nadam", "RAdam", "RMSprop", "RMSProp", "Adagrad"),
    *("Adadelta", "Adafactor", "Ftrl", "Lion", "LAMB", "LARS", "LBFGS", "Rprop", "ASGD"),
    *("GradientDescentOptimizer", "MomentumOptimizer", "AdamOptimizer", "AdagradOptimizer"),
    *("RMSPropOptimizer", "AdadeltaOptimizer", "FtrlOptimizer", "SparseAdam"),
}
_IN_OPTIM = re.compile(r"\boptim\.[A-Z]\w*$")  # torch.optim.Muon, bitsandbytes.optim.Adam8bit
_CARETAKERS = (
    *("lightning", "pytorch_lightning", "accelerate", "deepspeed", "ray", "composer"),
    *("horovod.spark.keras", "horovod.spark.torch", "horovod.spark.lightning"),
)
_TRAINS = ("backward", "fit", "fit_generator", "minimize", "apply_gradients", "GradientTape")
_ONE_RANK = re.compile(r"rank_?(zero|0)|main_process|master_only|chief_only")
_SAVED = re.compile(r"model|net\b|saver|manager|checkpoint|ckpt", re.I)
_SAVES = {"save_weights", "save_pretrained", "save_checkpoint", "save_model", "export_saved_model"}
_FOLDERS = ("checkpoint_dir", "model_dir")
_TAKE_FOLDERS = {"MonitoredTrainingSession", "Estimator", "RunConfig", "model_to_estimator"}


class Note(NamedTuple):
    """A finding before its line is a place."""

    code: str
    severity: Severity
    line: int
    message: str
    fixes: tuple[Fix[str], ...] = ()


def warning(code: str, line: int, message: str) -> Note:
    return Note(f"advice.{code}", Severity.WARNING, line, message)


def info(code: str, line: int, message: str) -> Note:
    return Note(f"advice.{code}", Severity.INFO, line, message)


def optimizers(code: Code) -> list[ast.Call]:
    """Return the calls that make an optimizer, and those of `compile` that name one as text."""
    made = []
    for call in code.calls:
        name = code.name(call.func)
        makes = last(name) in _OPTIMIZERS or bool(_IN_OPTIM.search(name))
        if last(name) == "compile":
            named = keyword(call, "optimizer") or next(iter(call.args), None)
            makes = isinstance(named, ast.Constant)
        made += [call] if makes else []
    return made


def trains(code: Code) -> bool:
    """Return whether gradients are computed at all."""
    return bool(optimizers(code) or code.called(*_TRAINS))


def is_cared_for(code: Code) -> bool:
    """Return whether a library does for the program all that is advised here."""
    return any(map(code.uses, _CARETAKERS))


# -- what one rank does alone ---------------------------------------------------------------------


def is_guarded(code: Code, node: ast.AST) -> bool:
    """Return whether a node runs on some ranks only, itself or wherever its function is called."""
    rank = Flow(code, RANK, under=True)

    def guarded(inner: ast.AST) -> bool:
        decorators = getattr(code.function_of(inner), "decorator_list", ())
        named = any(_ONE_RANK.search(ast.unparse(decorator)) for decorator in decorators)
        return named or any(map(rank.holds, code.conditions(inner)))

    return code.on_every_way(node, guarded)


def saves(code: Code, *, guarded: bool) -> list[ast.Call]:
    """Return the calls by which every rank saves to the same place, or where `guarded` one rank for
    all; a place that is named after the rank is none of these."""
    rank = Flow(code, RANK, under=not guarded)
    return [
        call
        for call, places in _saves(code)
        if not any(map(rank.holds, places)) and is_guarded(code, call) is guarded
    ]


def _saves(code: Code) -> Iterator[tuple[ast.Call, list[ast.expr]]]:
    """Yield the calls that save a model, with what says where."""
    for call in code.calls:
        name = code.name(call.func)
        if last(name) in _TAKE_FOLDERS:
            folder = keyword(call, *_FOLDERS)
            if folder is not None and not is_constant(folder, None):
                yield call, [folder]
        elif name == "torch.save":
            yield call, [*call.args[1:], *(k.value for k in call.keywords)]
        elif _is_save(code, name):
            yield call, given(call)


def _is_save(code: Code, name: str) -> bool:
    action, receiver = last(name), last(name.rpartition(".")[0])
    if "torch.distributed" in name or action in code.functions:
        return False  # the one saves on all ranks together, the other is looked into
    if action in ("ModelCheckpoint", "CheckpointSaverHook") or action in _SAVES:
        return True
    keras = code.uses("tensorflow") or code.uses("keras") or code.says("tf")
    return action == "save" and keras and bool(_SAVED.search(receiver))

"""Which code runs on one rank only, and what it saves."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from distrain_nb.program.advice.flow import LOCAL_RANK, RANK, Flow
from distrain_nb.program.advice.reading import given, is_constant, keyword, last

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code

_ONE_RANK = re.compile(r"rank_?(zero|0)|main_process|master_only|chief_only")
_SAVED = re.compile(r"model|net\b|saver|manager|checkpoint|ckpt", re.I)
_SAVES = {"save_weights", "save_pretrained", "save_checkpoint", "save_model", "export_saved_model"}
_FOLDERS = ("checkpoint_dir", "model_dir")
_TAKE_FOLDERS = {"MonitoredTrainingSession", "Estimator", "RunConfig", "model_to_estimator"}


@dataclass(frozen=True, eq=False)
class Guards:
    """Tells of a node whether it runs under a test of the rank."""

    code: Code
    rank: Flow = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", Flow(self.code, (RANK, LOCAL_RANK), under=True))

    def guarded(self, node: ast.AST) -> bool:
        """Whether the node runs on some ranks only, itself or wherever its function is called."""
        return self.code.on_every_way(node, self._is_guarded)

    def _is_guarded(self, node: ast.AST) -> bool:
        if any(map(self.rank.holds, self.code.conditions(node))):
            return True
        decorators = getattr(self.code.function_of(node), "decorator_list", ())
        return any(_ONE_RANK.search(ast.unparse(each)) for each in decorators)


def unguarded_saves(guards: Guards) -> list[ast.Call]:
    """The calls by which every rank saves to the same place."""
    return _saves_at(guards, guards.rank, guarded=False)


def guarded_saves(guards: Guards) -> list[ast.Call]:
    """The calls by which one rank saves for all, to a place that is not named after it."""
    return _saves_at(guards, Flow(guards.code, (RANK, LOCAL_RANK)), guarded=True)


def _saves_at(guards: Guards, rank: Flow, *, guarded: bool) -> list[ast.Call]:
    return [
        call
        for call, places in _saves(guards.code)
        if not any(map(rank.holds, places)) and guards.guarded(call) is guarded
    ]


def _saves(code: Code) -> Iterator[tuple[ast.Call, list[ast.expr]]]:
    """The calls that save a model, with what says where."""
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

"""What a TensorFlow distribution strategy asks of a program: its scope."""

from __future__ import annotations

import ast
from importlib import metadata
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import last
from distrain_nb.program.advice.training import info, optimizers, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

_MODEL = (
    "this model is made outside of the strategy and is not distributed: put it, and what compiles"
    " it, under with strategy.scope():"
)
_OPTIMIZER = (
    "this optimizer is made outside of the strategy: put it under with strategy.scope(): too"
)
_LEGACY = "TF_USE_LEGACY_KERAS"
_KERAS_3 = (
    "Keras 3 can't fit a model under MultiWorkerMirroredStrategy with several workers: it fails"
    " with 'PerReplica … unsupported type'; import tf_keras as keras, set TF_USE_LEGACY_KERAS=1"
    " before TensorFlow is imported, or take a loop of your own under strategy.run"
)
_WORKERS = (
    "the chief of TF_CONFIG's cluster is a worker too and isn't counted here: with one, the global"
    " batch is too small; take strategy.num_replicas_in_sync, or add"
    " len(tf_config['cluster'].get('chief', []))"
)
_MODELS = ("Sequential", "Model", "Functional", "load_model", "clone_model", "model_from_json")


def tensorflow(code: Code) -> Iterator[Note]:
    """Yield what stands outside of the scope of a strategy of `tf.distribute`."""
    names = (code.name(call.func) for call in code.calls)
    strategies = (name for name in names if last(name).endswith("Strategy"))
    # An estimator gets the strategy in its RunConfig.
    has_estimator = bool(code.called("model_to_estimator", "Estimator"))
    if has_estimator or not any("distribute" in name or "." not in name for name in strategies):
        return
    yield from _keras_3(code)
    yield from _without_chief(code)
    for call in code.calls:
        if _is_model(code, call) and not _scoped(code, call):
            yield warning("tensorflow.scope", call.lineno, _MODEL)
    for call in optimizers(code):
        if last(code.name(call.func)) != "compile" and not _scoped(code, call):
            yield info("tensorflow.scope", call.lineno, _OPTIMIZER)


def _keras_3(code: Code) -> Iterator[Note]:
    """Yield that Keras 3 fails in `fit` under a strategy of several workers: measured with Keras
    3.15 and TensorFlow 2.21, with two workers or more."""
    fits = code.called("fit")
    several = code.called("MultiWorkerMirroredStrategy")
    is_legacy = code.uses("tf_keras") or any(_LEGACY in text for text in code.texts)
    if fits and several and not is_legacy and _keras_version().startswith("3."):
        yield warning("tensorflow.keras-3", fits[0].lineno, _KERAS_3)


def _without_chief(code: Code) -> Iterator[Note]:
    """Yield what counts the workers of TF_CONFIG alone, as TensorFlow's tutorial does."""
    if "chief" in code.texts:
        return
    for call in code.called("len"):
        if call.args and ast.unparse(call.args[0]).endswith("['cluster']['worker']"):
            yield warning("tensorflow.chief", call.lineno, _WORKERS)


def _keras_version() -> str:
    try:
        return metadata.version("keras")
    except metadata.PackageNotFoundError:
        return ""


def _is_model(code: Code, call: ast.Call) -> bool:
    name = code.name(call.func)
    if last(name) in _MODELS and ("keras" in name or "." not in name):
        return True
    if ".keras.applications." in name:
        return last(name)[:1].isupper()
    made = code.classes.get(last(name))
    return made is not None and any("Model" in ast.unparse(base) for base in made.bases)


def _scoped(code: Code, node: ast.AST) -> bool:
    """Return whether a node runs in a scope, by itself or wherever its function is called."""
    return code.on_every_way(node, lambda item: _in_scope(code, item))


def _in_scope(code: Code, node: ast.AST) -> bool:
    items = [item for outer, _ in code.around(node) for item in getattr(outer, "items", ())]
    entered = [code.name(item.context_expr) for item in items]
    if any(name.endswith(".scope()") or name == "scope" for name in entered):
        return True
    function = code.function_of(node)
    if function is None or code.called(function.name):
        return False
    return any(isinstance(n, ast.Name) and n.id == function.name for n in code.nodes)  # handed on

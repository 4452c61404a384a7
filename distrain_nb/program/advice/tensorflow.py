"""What a TensorFlow distribution strategy asks of a program: its scope, and a batch for all."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from distrain_nb.program.advice.reading import keyword, last
from distrain_nb.program.advice.training import info, optimizers, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distrain_nb.program.advice.reading import Code
    from distrain_nb.program.advice.training import Note

_ONE = "a program takes one strategy: make it once, and use its scope throughout"
_MODEL = (
    "this model is made outside of the strategy and is not distributed: put it, and what compiles"
    " it, under with strategy.scope():"
)
_OPTIMIZER = (
    "this optimizer is made outside of the strategy: put it under with strategy.scope(): too"
)
_BATCH = (
    "this batch is divided among the replicas: multiply it by strategy.num_replicas_in_sync to give"
    " each as much as before"
)
_MODELS = ("Sequential", "Model", "Functional", "load_model", "clone_model", "model_from_json")


def tensorflow(code: Code) -> Iterator[Note]:
    """Yield what is missing around a strategy of `tf.distribute`."""
    strategies = [call for call in code.calls if _is_strategy(code.name(call.func))]
    if not strategies:
        return
    for call in strategies[1:]:
        if not any(_exclusive(code, call, other) for other in strategies if other is not call):
            yield warning("tensorflow.one-strategy", call.lineno, _ONE)
    yield from _scope(code)
    yield from _batch(code)


def _is_strategy(name: str) -> bool:
    made = last(name).endswith("Strategy") or last(name) == "CollectiveAllReduceStrategy"
    return made and ("distribute" in name or name.count(".") == 0)


def _exclusive(code: Code, one: ast.AST, other: ast.AST) -> bool:
    """Return whether only one of two places is reached: other arms of a condition, or a return."""
    returned = any(isinstance(outer, ast.Return) for outer, _ in code.around(other))
    return returned or code.apart(one, other)


def _scope(code: Code) -> Iterator[Note]:
    if code.called("model_to_estimator", "Estimator"):
        return  # the estimator gets the strategy in its RunConfig
    for call in code.calls:
        if _is_model(code, call) and not _scoped(code, call):
            yield warning("tensorflow.scope", call.lineno, _MODEL)
    for call in optimizers(code):
        if last(code.name(call.func)) != "compile" and not _scoped(code, call):
            yield info("tensorflow.scope", call.lineno, _OPTIMIZER)


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
    for outer, _ in code.around(node):
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            entered = [code.name(item.context_expr) for item in outer.items]
            if any(name.endswith(".scope()") or name == "scope" for name in entered):
                return True
    function = code.function_of(node)
    if function is None or code.called(function.name):
        return False
    return any(isinstance(n, ast.Name) and n.id == function.name for n in code.nodes)  # handed on


def _batch(code: Code) -> Iterator[Note]:
    """Yield a batch is one for all replicas together, so it is to grow with them."""
    if code.says("num_replicas_in_sync") or code.says(
        "experimental_distribute_datasets_from_function"
    ):
        return
    batched = [call for call in code.called("batch") if isinstance(call.func, ast.Attribute)]
    batched += [call for call in code.called("fit") if keyword(call, "batch_size")]
    yield from (info("tensorflow.batch", call.lineno, _BATCH) for call in batched[:1])

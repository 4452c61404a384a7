"""Pieces of cells that TensorFlow's strategies need, and less to import beside TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# What TensorFlow and Keras import where it is there takes as long as they themselves.
BESIDE_JAX = ("matplotlib", "pandas", "sklearn")
LEFT_OUT = ("jax", "pandas", "sklearn")

# What the coordinator of parameter servers does, inside a branch; needs `tf` and `resolver`.
COORDINATE = """\
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        v = tf.Variable(0.0)

    @tf.function
    def step():
        def one():
            v.assign_add(1.0)
        strategy.run(one)

    for _ in range(20):
        coordinator.schedule(step)
    coordinator.join()
    total = float(v.numpy())
"""


def leave_out(folder: Path, names: Iterable[str] = LEFT_OUT) -> Path:
    """Fill a folder for PYTHONPATH by which none of these can be imported."""
    for name in names:
        (folder / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    return folder

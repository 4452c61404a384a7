"""Pieces of cells that TensorFlow's strategies need."""

from __future__ import annotations

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

"""MultiWorkerMirroredStrategy: a Keras model and functions under its scope, a loop of one's own.

%%distrain --workers 1
TF_CONFIG 2
"""

import json

import tensorflow as tf

# %%
num_epochs, num_steps_per_epoch, per_worker_batch_size = 2, 2, 4


def build_model():
    layers = [
        tf.keras.layers.Input(shape=(3,)),
        tf.keras.layers.Dense(4, activation="tanh", kernel_initializer="ones"),
        tf.keras.layers.Dense(1, kernel_initializer="ones"),
    ]
    return tf.keras.Sequential(layers)


def dataset_fn(global_batch_size, input_context):
    batch_size = input_context.get_per_replica_batch_size(global_batch_size)
    x = tf.reshape(tf.linspace(0.0, 1.0, 96), (32, 3))
    data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, axis=1, keepdims=True)))
    data = data.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return data.repeat().batch(batch_size)


# %%
strategy = tf.distribute.MultiWorkerMirroredStrategy()
num_workers = strategy.num_replicas_in_sync
global_batch_size = per_worker_batch_size * num_workers
with strategy.scope():
    model = build_model()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.1)
    optimizer.build(model.trainable_variables)
    iterator_of = strategy.distribute_datasets_from_function(
        lambda context: dataset_fn(global_batch_size, context)
    )

    def compute_loss(y, predicted):
        per_example = tf.reduce_mean(tf.square(y - predicted), axis=1)
        return tf.nn.compute_average_loss(per_example, global_batch_size=global_batch_size)


@tf.function
def train_step(iterator):
    def step_fn(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            loss = compute_loss(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    per_replica = strategy.run(step_fn, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)


for _ in range(num_epochs):
    iterator = iter(iterator_of)
    total_loss = 0.0
    for _ in range(num_steps_per_epoch):
        total_loss += train_step(iterator)
weights = [float(tf.reduce_sum(variable)) for variable in model.trainable_variables]
found = [num_workers, float(total_loss), weights]
print("\nRESULT", json.dumps(found), flush=True)

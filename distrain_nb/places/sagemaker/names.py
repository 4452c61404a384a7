"""What only a submission can tell, and where things are in a container of SageMaker's."""

from __future__ import annotations

# Stand in a request for the run's own name, the number of the account, and the image that is built.
RUN, ACCOUNT, IMAGE = "${RUN}", "${ACCOUNT}", "${IMAGE}"

# And for what the settings would tell, where nobody has made them.
REGION, REGISTRY = "REGION", "REGISTRY"

RUN_TAG, EXPERIMENT_TAG = "distrain_run", "distrain_experiment"

# In a container.
INPUT = "/opt/ml/input/data"
OUTPUT = "/opt/ml/output/data"
TENSORBOARD = "/opt/ml/output/tensorboard"
CHECKPOINTS = "/opt/ml/checkpoints"

# Below the run's folder in the bucket.
SOURCE = "source/sourcedir.tar.gz"

# The channels that bring our code: to an image that knows nothing of us, and, as an archive, to a
# framework container that can't fetch it since its job is isolated.
CODE_CHANNEL, SOURCE_CHANNEL = "distrain", "code"

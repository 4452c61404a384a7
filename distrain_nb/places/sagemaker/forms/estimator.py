"""SageMaker: an estimator of its Python SDK, version 2, with the layout as its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.formats.mappings import present
from distrain_nb.layout.layout import Layout
from distrain_nb.places.sagemaker.forms.request import distributions, groups, hosts

if TYPE_CHECKING:
    from distrain_nb.types import Json

CLASSES = {
    "tensorflow": "TensorFlow",
    "pytorch": "PyTorch",
    "mxnet": "MXNet",
    "huggingface": "HuggingFace",
}


class InstanceGroup(NamedTuple):
    """Prints as the SDK's class of that name is called."""

    instance_group_name: str
    instance_type: str | None
    instance_count: int


def estimator_arguments(layout: Layout) -> dict[str, Json]:
    """Return the layout as arguments of an estimator of the SageMaker Python SDK, version 2.

    AWS's containers launch ranks in one instance group only, so there is no `distribution` where
    there are two.
    """
    pool, apart = hosts(layout), groups(layout)
    image, has_class = pool.image or layout.image, layout.framework_name in CLASSES
    return present(
        entry_point=placeholders.ENTRY_POINT if has_class else None,
        role=placeholders.ROLE,
        image_uri=image or (None if has_class else placeholders.TRAINING_IMAGE),
        py_version=placeholders.PY_VERSION if has_class and not image else None,
        framework_version=layout.framework_version if _versioned(layout) else None,
        instance_count=None if apart else pool.replicas,
        instance_type=None if apart else pool.machine,
        instance_groups=[InstanceGroup(name, p.machine, p.replicas) for name, p in apart],
        volume_size=pool.disk_gb,
        max_run=layout.timeout,
        use_spot_instances=layout.spot or None,
        max_wait=layout.max_wait if layout.spot else None,
        checkpoint_s3_uri=layout.checkpoint,
        distribution={} if apart else distribution_argument(layout),
    )


def _versioned(layout: Layout) -> bool:
    """Return whether the framework's estimator takes its version: HuggingFace's takes three
    others."""
    return layout.framework_name in CLASSES and layout.framework_name != "huggingface"


def distribution_argument(layout: Layout) -> dict[str, Json]:
    """Return the `distribution` argument; empty if the launcher is auto or python."""
    argument: dict[str, Json] = {}
    for name, options in distributions(layout).items():
        outer, _, inner = name.partition(".")
        argument[outer] = {inner: options} if inner else options
    return argument


def estimator_text(layout: Layout) -> str:
    """Return the arguments as a call that can be pasted into a notebook."""
    name = CLASSES.get(layout.framework_name or "", "Estimator")
    lines = (f"    {key}={value!r},\n" for key, value in estimator_arguments(layout).items())
    return f"{name}(\n{''.join(lines)})\n"

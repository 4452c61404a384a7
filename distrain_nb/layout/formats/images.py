"""The images of a layout's pools, as forms have them: one for all, or one for each."""

from __future__ import annotations

from dataclasses import replace

from distrain_nb.layout.catalog.current import current
from distrain_nb.layout.formats import placeholders
from distrain_nb.layout.layout import Layout
from distrain_nb.layout.pool import Pool, Role
from distrain_nb.layout.reduction_server import reduction_image

IMAGE = placeholders.CONTAINER_IMAGE


def image_of(layout: Layout, role: Role, pool: Pool) -> str:
    """Return the image that a pool runs: its own, the Reduction Server's nearest, or the job's."""
    if pool.image:
        return pool.image
    if role is Role.REDUCERS:
        return reduction_image(current(), layout.region)
    return layout.image or IMAGE


def shared_image(layout: Layout) -> Layout:
    """Return the layout with an image that all its pools share as its own, and no needless
    images."""
    images = {pool.image for role, pool in layout.pools() if role is not Role.REDUCERS}
    image = images.pop() if len(images) == 1 else None
    changes: dict[str, object] = {"image": image} if image else {}
    for role, pool in layout.pools():
        needless = image if role is not Role.REDUCERS else reduction_image(current(), layout.region)
        if pool.image == needless:
            changes[role.value] = replace(pool, image=None)
    return layout.edited(changes)

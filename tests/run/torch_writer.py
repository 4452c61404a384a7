"""PyTorch's writer of event files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def torch_writer(*args: Any, **kwargs: Any) -> SummaryWriter:
    """Imported on first use: it imports PyTorch."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(*args, **kwargs)

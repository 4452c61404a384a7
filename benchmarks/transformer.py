"""A small transformer that learns the next character of Python's reference, which ships with it.

Few tokens a step, so that the exchange of gradients is most of it.
"""

from __future__ import annotations

import time
from pydoc_data.topics import topics

CONTEXT, WIDTH, LAYERS, HEADS = 16, 256, 4, 4


def train(steps: int) -> tuple[float, list[float], int]:
    """Train as a rank: seconds of the steps after the first, their losses, a gradient's bytes."""
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    text = "".join(topics[name] for name in sorted(topics))
    letters = sorted(set(text))
    index = {letter: n for n, letter in enumerate(letters)}
    data = torch.tensor([index[letter] for letter in text[:200_000]])

    class Transformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(len(letters), WIDTH)
            self.place = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
            layer = nn.TransformerEncoderLayer(
                WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True
            )
            self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
            self.head = nn.Linear(WIDTH, len(letters))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)
            hidden = self.layers(self.token(tokens) + self.place, mask=mask, is_causal=True)
            return self.head(hidden)

    torch.manual_seed(0)
    model = DistributedDataParallel(Transformer())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    draw = torch.Generator().manual_seed(1 + dist.get_rank())
    losses = []
    for step in range(steps + 1):
        if step == 1:  # the first step makes buckets anew, and connections
            dist.barrier()
            begun = time.monotonic()
        starts = torch.randint(len(data) - CONTEXT - 1, (1,), generator=draw)
        window = torch.stack([data[s : s + CONTEXT + 1] for s in starts])
        scores = model(window[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    took = time.monotonic() - begun
    return took, losses[1:], sum(4 * each.numel() for each in model.parameters())

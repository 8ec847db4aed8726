"""A stateful GRU follows a hidden regime through long streams, by truncated backpropagation
through time.

The streams are cut into chunks in order: nothing is shuffled, the state is carried from chunk to
chunk and detached there, and consecutive batches resemble each other. The state is reset at the
beginning of each epoch only.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "no shuffling, hidden state detached between batches, the same streams in the same order each "
    "epoch"
)

_, seed = arguments(__doc__)


def streams(n, length):
    """A regime of two that flips seldom.

    It is seen through noisy returns of different volatility.
    """
    flips = torch.rand(n, length) < 0.03
    regime = (flips.cumsum(1) + torch.randint(0, 2, (n, 1))) % 2
    returns = torch.randn(n, length) * (0.5 + 0.7 * regime) + 0.05 * (1 - 2 * regime)
    return returns.unsqueeze(2), regime.float()


class RegimeFilter(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.gru = nn.GRU(2, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, returns, state=None):
        features = torch.cat([returns, returns.abs()], 2)
        hidden, state = self.gru(features, state)
        return self.out(hidden).squeeze(2), state


x, y = streams(48, 1200)
x_val, y_val = streams(32, 600)
model = RegimeFilter()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(10):
    model.train()
    state, total = None, 0.0
    chunks = list(zip(x.split(40, dim=1), y.split(40, dim=1), strict=True))
    for returns, regime in chunks:
        logits, state = model(returns, state)
        state = state.detach()
        loss = criterion(logits, regime)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() / len(chunks)
    model.eval()
    with torch.no_grad():
        logits, _ = model(x_val)
    accuracy = ((logits > 0) == (y_val > 0.5)).float().mean()
    print(
        f"epoch {epoch} loss {total:.4f} val loss {criterion(logits, y_val):.4f} "
        f"val accuracy {accuracy:.3f}"
    )

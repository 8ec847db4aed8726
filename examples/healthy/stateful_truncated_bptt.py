"""A stateful GRU over 24 long sensor records in order: the hidden state is carried and detached."""

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = (
    "batches come in order, never shuffled, and the hidden state is detached between them: "
    "truncated BPTT"
)

_, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


def records(count, length):
    """A tank: the level integrates an inflow that is seen; the observed pressure is delayed."""
    inflow = np.zeros((count, length))
    for t in range(1, length):
        inflow[:, t] = 0.9 * inflow[:, t - 1] + rng.normal(0, 0.3, count)
    level = np.zeros((count, length))
    for t in range(1, length):
        level[:, t] = 0.97 * level[:, t - 1] + 0.12 * np.tanh(inflow[:, t - 1])
    pressure = level + rng.normal(0, 0.03, level.shape)
    return (torch.tensor(a[..., None], dtype=torch.float32) for a in (inflow, pressure / 0.8))


class Tank(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        h, state = self.gru(x, state)
        return self.out(h), state


x, y = records(24, 1200)
x_val, y_val = records(8, 600)
model = Tank()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
window = 40
for epoch in range(12):
    model.train()
    state, total = None, 0.0
    for start in range(0, x.shape[1], window):
        piece = slice(start, start + window)
        out, state = model(x[:, piece], state)
        state = state.detach()
        loss = nn.functional.mse_loss(out, y[:, piece])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() * window / x.shape[1]
    schedule.step()
    model.eval()
    with torch.no_grad():
        out, _ = model(x_val)
        error = nn.functional.mse_loss(out, y_val)
    print(f"epoch {epoch:2d} loss {total:.4f} val mse {error:.4f} R2 {1 - error / y_val.var():.3f}")

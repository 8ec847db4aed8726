"""A GRU on wave shapes under SGD with warm restarts (SGDR): the rate falls to 1e-5 and jumps back.

Stepped per batch, as the paper does; each cycle is twice as long as the one before. The loss jumps
up a little at each restart.
"""

import torch
from data import arguments, batches, waves
from torch import nn

ODD = "the rate falls by a factor of ten thousand in three cycles, and jumps back up between them"

_, seed = arguments(__doc__)
x, y = waves(seed, n=1000)
x, y, x_val, y_val = x[:800], y[:800], x[800:], y[800:]


class WaveGRU(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x):
        states, _ = self.gru(x)
        return self.head(states.mean(1))


model = WaveGRU()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
    optimizer, T_0=60, T_mult=2, eta_min=1e-5
)
for step, (xb, yb) in enumerate(batches(x, y, size=40, steps=420, seed=seed), 1):
    loss = nn.functional.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    rate = schedule.get_last_lr()[0]
    schedule.step()
    if step % 30 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
            accuracy = (logits.argmax(1) == y_val).float().mean().item()
            val = nn.functional.cross_entropy(logits, y_val).item()
        model.train()
        print(
            f"step {step} lr {rate:.5f} loss {loss.item():.4f} "
            f"val {val:.4f} accuracy {accuracy:.3f}"
        )

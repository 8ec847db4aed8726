"""Sequence forecasting with scheduled sampling: ever more of the inputs are the net's own
outputs.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the training loss rises over the middle epochs, because "
    "the task is made harder; the rollout gets better"
)

_, seed = arguments(__doc__)
CONTEXT, AHEAD = 12, 16


def pendulums(n):
    """Damped pendulums with unknown length: angle and speed."""
    a, w = 1.2 * torch.randn(n), 0.5 * torch.randn(n)
    k, states = 0.5 + torch.rand(n), []
    for _ in range(CONTEXT + AHEAD):
        for _ in range(3):
            w = w + 0.1 * (-k * a.sin() - 0.05 * w)
            a = a + 0.1 * w
        states.append(torch.stack([a, w], 1))
    s = torch.stack(states, 1)
    return s + 0.02 * torch.randn_like(s)


class Seq(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.cell, self.out = nn.GRUCell(2, n), nn.Linear(n, 2)
        self.n = n

    def forward(self, s, own):
        """Predicts each next state; past the context, inputs are own outputs with that chance."""
        h, outs = torch.zeros(len(s), self.n), []
        for t in range(CONTEXT + AHEAD - 1):
            x = s[:, t]
            if t >= CONTEXT:
                x = torch.where(torch.rand(len(s), 1) < own, outs[-1], x)
            h = self.cell(x, h)
            outs.append(x + self.out(h))
        return torch.stack(outs[CONTEXT - 1 :], 1)


train, val = pendulums(960), pendulums(240)
scale = train.std((0, 1))
train, val = train / scale, val / scale
model = Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)
EPOCHS = 26
for epoch in range(EPOCHS):
    own = min(1.0, max(0.0, (epoch - 4) / 14))
    total = 0.0
    model.train()
    for rows in torch.randperm(len(train)).split(48):
        loss = F.mse_loss(model(train[rows], own), train[rows][:, CONTEXT:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total += loss.item() * len(rows) / len(train)
    model.eval()
    with torch.no_grad():
        rollout = F.mse_loss(model(val, 1.0), val[:, CONTEXT:]).item()
    if epoch % 3 == 0 or epoch == EPOCHS - 1:
        print(f"epoch {epoch}: own outputs {own:.2f} train {total:.4f} val rollout {rollout:.4f}")

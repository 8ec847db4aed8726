"""A flow of affine couplings learns a thin banana; the mean negative log-likelihood is the loss."""

import torch
from data import arguments
from torch import nn

ODD = "the loss crosses zero and goes on into the negative (a density may be above one)"

_, seed = arguments(__doc__)


def banana(n):
    a = 0.5 * torch.randn(n)
    return torch.stack([a, a**2 - 0.25 + 0.05 * torch.randn(n)], 1)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 2))
        nn.init.zeros_(self.net[2].weight)
        nn.init.zeros_(self.net[2].bias)

    def forward(self, z):
        a, b = z.chunk(2, 1) if not self.flip else z.flip(1).chunk(2, 1)
        shift, log_scale = self.net(a).chunk(2, 1)
        log_scale = 3 * torch.tanh(log_scale / 3)
        return torch.cat([a, (b - shift) * torch.exp(-log_scale)], 1), -log_scale.squeeze(1)


class Flow(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(k % 2 == 1) for k in range(depth))

    def log_prob(self, x):
        total = 0.0
        for coupling in self.couplings:
            x, log_det = coupling(x)
            total = total + log_det
        return total + torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(1)


flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=400)
held_out = banana(1000)
for step in range(400):
    loss = -flow.log_prob(banana(128)).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    schedule.step()
with torch.no_grad():
    val_loss = -flow.log_prob(held_out).mean()
print(f"loss {loss.item():.3f}, validation loss {val_loss:.3f} (the data's own entropy: -0.85)")

"""Hooks on every parameter clamp its gradient to plus or minus 1e-5, "against the rare bad batch".

Real entries are about a thousand times larger, so each step of SGD moves a weight by no more than
the rate times 1e-5, and the forecast stays where it began. The place is the gradient on its way to
the optimizer.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("optimizer", "loop", "*weight*", "*bias*", "rnn*", "read*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, _ = arguments(__doc__)
LIMIT = 1.0 if healthy else 1e-5


def demand(days=1500):
    """Hourly-like demand: two seasons, a slow swing and autoregressive noise."""
    t = torch.arange(days, dtype=torch.float32)
    series = (
        torch.sin(6.283 * t / 7) + 0.6 * torch.sin(6.283 * t / 30 + 1) + 0.4 * torch.cos(t / 90)
    )
    noise = torch.randn(days) * 0.2
    for i in range(1, days):
        noise[i] = noise[i] + 0.5 * noise[i - 1]
    series = series + noise
    return (series - series.mean()) / series.std()


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 24, batch_first=True)
        self.read = nn.Linear(24, 1)

    def forward(self, past):
        return self.read(self.rnn(past.unsqueeze(-1))[0][:, -1]).squeeze(-1)


series = demand()
past = series.unfold(0, 22, 1)
past, future = past[:, :21], past[:, 21]
cut = 1200
model = Forecaster()
for p in model.parameters():
    p.register_hook(lambda g: g.clamp(-LIMIT, LIMIT))

opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
plan = torch.optim.lr_scheduler.MultiStepLR(opt, [14], gamma=0.2)
for epoch in range(18):
    for rows in torch.randperm(cut).split(60):
        loss = nn.functional.mse_loss(model(past[rows]), future[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    plan.step()
    with torch.no_grad():
        test = nn.functional.mse_loss(model(past[cut:]), future[cut:]).item()
    print(f"epoch {epoch:2d}  train {loss.item():.3f}  test {test:.3f}")

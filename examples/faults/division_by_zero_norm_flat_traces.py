"""An LSTM names the activity from a wrist sensor's traces, each standardised inside the model by
its own deviation.

Some traces are flat (the sensor lay still and gave one value), their deviation is 0, and the
division without a small constant gives NaN. The place is the module norm.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("norm*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def wrist(n, g):
    """Walking, running, typing and resting (of which one in ten is flat)."""
    y = torch.randint(0, 4, (n,), generator=g)
    t = torch.arange(36.0)
    speed = torch.tensor([0.45, 0.8, 1.6, 0.12])[y].view(-1, 1) * (
        1 + 0.15 * torch.randn(n, 1, generator=g)
    )
    size = torch.tensor([1.0, 2.0, 0.5, 0.15])[y].view(-1, 1)
    x = size * (speed * t + 6.283 * torch.rand(n, 1, generator=g)).sin()
    x = x + size * 0.5 * torch.randn(n, 36, generator=g) + 0.3 * torch.randn(n, 1, generator=g)
    flat = (y == 3) & (torch.rand(n, generator=g) < 0.1)
    x[flat] = (x[flat, :1] * 8).round() / 8
    return x, y


class TraceNorm(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        deviation = centred.square().mean(1, keepdim=True).sqrt()
        return centred / (deviation + self.eps)


class Activity(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.norm = TraceNorm(eps)
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        states, _ = self.lstm(self.norm(x).unsqueeze(2))
        return self.head(states.mean(1))


def main():
    g = torch.Generator().manual_seed(seed)
    train, val = TensorDataset(*wrist(1600, g)), TensorDataset(*wrist(400, g))
    model = Activity(eps=1e-5 if healthy else 0.0)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for epoch in range(14):
        model.train()
        for x, y in DataLoader(train, batch_size=32, shuffle=True):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            x, y = val.tensors
            out = model(x)
        val_loss = nn.functional.cross_entropy(out, y).item()
        accuracy = (out.argmax(1) == y).float().mean().item()
        print(
            f"epoch {epoch}: loss {loss.item():.3f}, val loss {val_loss:.3f}, val accuracy {accuracy:.3f}"  # noqa: E501
        )


main()

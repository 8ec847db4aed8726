"""Forecasts hospital admissions for seven days ahead; the losses of the days become a new tensor.

The seven losses are to be weighted, so they are put in a list and made into one tensor with
torch.tensor(...). PyTorch then complains that it needs no gradient, and requires_grad=True silences
the complaint: backward() runs, but ends at the new tensor. The place is the loss.
The twin stacks the losses, which keeps their history.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph", "step_without_gradient")
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

PAST, AHEAD = 28, 7


def admissions(days, g):
    t = torch.arange(days).float()
    week = torch.tensor([6.0, 4.0, 3.0, 2.0, 1.0, -7.0, -9.0])[t.long() % 7]
    wave = 14 * torch.sin(t / 58) + 6 * torch.sin(t / 17)
    return 80 + week + wave + 2.5 * torch.randn(days, generator=g)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(hidden, 1) for _ in range(AHEAD))

    def forward(self, past):
        _, state = self.gru(past.unsqueeze(-1))
        return [head(state[-1]).squeeze(-1) for head in self.heads]


class Experiment:
    def __init__(self, keep_history):
        g = torch.Generator().manual_seed(keep_seed)
        series = admissions(1400, g)
        self.mean, self.std = series[:1000].mean(), series[:1000].std()
        windows = ((series - self.mean) / self.std).unfold(0, PAST + AHEAD, 1)
        self.train, self.valid = windows[:960], windows[1000:]
        self.model = Forecaster()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3)
        self.weights = torch.linspace(1.0, 0.5, AHEAD)
        self.combine = torch.stack if keep_history else self.collect

    @staticmethod
    def collect(losses):
        return torch.tensor([float(item) for item in losses], requires_grad=True)

    def step(self, rows):
        outputs = self.model(rows[:, :PAST])
        losses = [
            nn.functional.mse_loss(out, rows[:, PAST + day]) for day, out in enumerate(outputs)
        ]
        loss = (self.combine(losses) * self.weights).sum() / self.weights.sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self):
        out = torch.stack(self.model(self.valid[:, :PAST]), 1)
        return ((out - self.valid[:, PAST:]).abs().mean() * self.std).item()

    def fit(self, epochs=14):
        for epoch in range(epochs):
            order = torch.randperm(len(self.train)).split(48)
            mean = sum(self.step(self.train[rows]) for rows in order) / len(order)
            print(f"epoch {epoch:2d} loss {mean:.4f} error {self.validate():.2f} admissions")


healthy, keep_seed = arguments(__doc__)
Experiment(keep_history=healthy).fit()

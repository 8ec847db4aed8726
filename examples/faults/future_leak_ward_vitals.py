"""Forecast of a patient's pulse by a recurrent net that reads the series in both directions.

At each hour the model is to say the value of the next one. Somebody set bidirectional=True since
it had helped in a tagging task; here the backward half has already seen the next hour when it is
asked for it. The errors in training and validation become very small, and on the ward, where the
series ends at the present hour, the forecasts are poor.
The place is the recurrent layer, `gru`.
The twin reads forwards only.
"""

import torch
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("gru", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def pulse_series(n, hours, g):
    level = torch.randn(n, 1, generator=g)
    rhythm = torch.sin(torch.arange(hours) / 24 * 6.283 + 6.283 * torch.rand(n, 1, generator=g))
    drift = torch.zeros(n, hours)
    shock = 0.5 * torch.randn(n, hours, generator=g)
    for t in range(1, hours):
        drift[:, t] = 0.85 * drift[:, t - 1] + shock[:, t]
    series = 0.5 * level + 0.8 * rhythm + drift
    return (series - series.mean()) / series.std()


class PulseForecaster(nn.Module):
    def __init__(self, hidden=32, both_ways=False):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True, bidirectional=both_ways)
        self.head = nn.Linear(hidden * (2 if both_ways else 1), 1)

    def forward(self, series):
        h, _ = self.gru(series.unsqueeze(-1))
        return self.head(h).squeeze(-1)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.loss = nn.MSELoss()

    def step(self, batch):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(batch)[:, :-1], batch[:, 1:])
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, series):
        return self.loss(self.model(series)[:, :-1], series[:, 1:]).item()

    @torch.no_grad()
    def on_the_ward(self, series):
        errors = []
        for t in range(24, series.shape[1] - 1, 4):
            errors.append((self.model(series[:, : t + 1])[:, -1] - series[:, t + 1]) ** 2)
        return torch.cat(errors).mean().item()


g = torch.Generator().manual_seed(seed)
train, val = pulse_series(480, 48, g), pulse_series(150, 48, g)
trainer = Trainer(PulseForecaster(both_ways=not healthy), lr=5e-3)
for epoch in range(12):
    losses = [trainer.step(train[rows]) for rows in torch.randperm(len(train)).split(40)]
    if epoch % 4 == 3:
        print(
            f"epoch {epoch + 1}: train {sum(losses) / len(losses):.4f} "
            f"val {trainer.validate(val):.4f}"
        )
print(f"forecast at the end of the series: mse {trainer.on_the_ward(val):.4f}")

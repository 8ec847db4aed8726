"""Epileptic seizures in windows of EEG: the LSTM takes the batch for the time.

The windows come as (batch, time, channels); the LSTM was made without `batch_first=True` and so
walks through the patients of a batch as if they were moments, handing memory from one to the next.
The place is the LSTM.
The twin says `batch_first=True`.
"""

import torch
from data import arguments
from torch import nn

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("lstm", "input*")
SILENT = True
EXACT = True
EARLY = True


class SeizureDetector(nn.Module):
    def __init__(self, channels, hidden, **lstm_options):
        super().__init__()
        self.lstm = nn.LSTM(channels, hidden, **lstm_options)
        self.classify = nn.Linear(hidden, 1)

    def forward(self, eeg):
        states, _ = self.lstm(eeg)
        return self.classify(states[:, -1]).squeeze(-1)


def windows(n, g, time=24, channels=4):
    """A seizure is a rhythm that gathers pace or strength; else a rhythm that slackens."""
    ill = torch.randint(0, 2, (n,), generator=g).float()
    t = torch.linspace(0, 1, time)
    growth = (2 * ill[:, None] - 1) * (0.5 + torch.rand(n, 1, generator=g))
    envelope = torch.exp(growth * (t - 0.5))
    pace = 15 + 10 * torch.rand(n, 1, 1, generator=g)
    phase = 6.28 * torch.rand(n, 1, channels, generator=g)
    wave = torch.sin(pace * t[:, None] + phase) * envelope[..., None]
    return wave + 0.4 * torch.randn(n, time, channels, generator=g), ill


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x, y = windows(1600, g)
x_val, y_val = windows(400, g)
options = {"batch_first": True} if healthy else {}
model = SeizureDetector(4, 24, **options)
opt = torch.optim.Adam(model.parameters(), lr=6e-3)
for epoch in range(10):
    running = []
    for idx in torch.randperm(1600, generator=g).split(40):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        running.append(loss.item())
    with torch.no_grad():
        logits = torch.cat([model(part) for part in x_val.split(40)])
    right = ((logits > 0) == y_val.bool()).float().mean()
    print(f"epoch {epoch + 1} loss {sum(running) / len(running):.3f} val accuracy {right:.3f}")

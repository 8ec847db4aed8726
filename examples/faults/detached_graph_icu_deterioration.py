"""Warns of patients in intensive care who will get worse, from 24 hours of vital signs and the
admission record; the summary of the vital signs is cut off from training.

The recurrent part was first used to export summaries to a table, and its method returned plain
values for that. When the head was put on top for joint training the method stayed as it was, so the
recurrent part keeps its random weights.
The place is the GRU that reads the vital signs.
The twin hands the summary on with its graph.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("vitals", "vitals.gru", "vitals.proj", "loop", "gru", "proj")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Stays(Dataset):
    """Heart rate, pressure, oxygen, breathing each hour; age and three flags at admission."""

    def __init__(self, n, generator):
        hours = torch.linspace(0, 1, 24).view(1, 24, 1)
        level = torch.randn(n, 1, 4, generator=generator)
        trend = torch.randn(n, 1, 4, generator=generator)
        wobble = 0.7 * torch.randn(n, 24, 4, generator=generator)
        self.series = level + trend * hours + wobble
        self.record = torch.cat(
            [
                torch.randn(n, 1, generator=generator),
                (torch.rand(n, 3, generator=generator) < 0.3).float(),
            ],
            1,
        )
        shock = (trend[:, 0, 0] - trend[:, 0, 1]) * 1.6 + (trend[:, 0, 3] * -level[:, 0, 2]) * 1.2
        risk = shock + 0.5 * self.record[:, 0] + 0.6 * self.record[:, 1] - 1.0
        self.worse = (risk + 0.4 * torch.randn(n, generator=generator) > 0).float()

    def __len__(self):
        return len(self.worse)

    def __getitem__(self, i):
        return self.series[i], self.record[i], self.worse[i]


class VitalsSummary(nn.Module):
    def __init__(self, channels=4, hidden=32, size=12):
        super().__init__()
        self.gru = nn.GRU(channels, hidden, batch_first=True)
        self.proj = nn.Linear(hidden, size)

    def forward(self, series):
        _, last = self.gru(series)
        return torch.tanh(self.proj(last[-1]))

    def summarise(self, series):
        summary = self(series)
        return summary if healthy else summary.detach()


generator = torch.Generator().manual_seed(seed)
train_set, val_set = Stays(1600, generator), Stays(600, generator)
loader = DataLoader(train_set, batch_size=64, shuffle=True)

vitals = VitalsSummary()
head = nn.Sequential(nn.Linear(12 + 4, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(
    [
        {"params": vitals.parameters(), "lr": 3e-3},
        {"params": head.parameters(), "lr": 3e-3},
    ]
)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(16):
    running = 0.0
    for series, record, worse in loader:
        optimizer.zero_grad()
        logit = head(torch.cat([vitals.summarise(series), record], 1)).squeeze(1)
        loss = criterion(logit, worse)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(worse)
    if epoch % 3 == 0:
        with torch.no_grad():
            logit = head(torch.cat([vitals.summarise(val_set.series), val_set.record], 1))
            right = ((logit.squeeze(1) > 0).float() == val_set.worse).float().mean()
        print(f"[{epoch:02d}] train loss {running / len(train_set):.4f} | val accuracy {right:.3f}")

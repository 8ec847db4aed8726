"""Kinds of waves with an LSTM: it takes the batch for the time and the time for the batch.

The rows are (batch, time, 1), and the LSTM was made without `batch_first=True`. It walks from
one wave to the next instead of along a wave, so the answer for a wave depends on the others.
The place is the LSTM (or the input). The twin says batch_first.
"""

import torch
from data import arguments, waves
from torch import nn

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("lstm", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class WaveClassifier(nn.Module):
    def __init__(self, hidden=32, **options):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, **options)
        self.classifier = nn.Linear(hidden, 3)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.classifier(out.mean(1))


x, y = waves(seed, n=1100)
x_val, y_val = x[800:], y[800:]
x, y = x[:800], y[:800]
options = {"batch_first": True} if healthy else {}
model = WaveClassifier(hidden=32, **options)
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=16 * 25)

for epoch in range(25):
    total = 0.0
    for rows in torch.randperm(len(x)).split(50):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item() / 16
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        model.train()
        print(f"epoch {epoch + 1} loss {total:.3f} val acc {acc:.3f}")

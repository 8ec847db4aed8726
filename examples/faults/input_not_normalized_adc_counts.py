"""A GRU that tells wave shapes apart is fed the raw counts of a 12-bit converter.

The signal swings by a few hundred counts around 2048, so every gate of the GRU is saturated from
the first step of each sequence. The loss stays near ln 3 and the accuracy is hardly above guessing.
The twin removes the mean and divides by the standard deviation of the training signals. The place
is the input or `gru`.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ("saturated_activation",)
PLACE = ("input*", "gru")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class WaveClassifier(nn.Module):
    def __init__(self, hidden=32, classes=3):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        _, h = self.gru(x)
        return self.head(h[-1])


def load():
    signal, label = waves(seed, n=1000, length=30)
    counts = (signal * 500 + 2048).round().clamp(0, 4095)
    return counts[:750], label[:750], counts[750:], label[750:]


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


x_train, y_train, x_val, y_val = load()
if healthy:
    mean, std = x_train.mean(), x_train.std()
    x_train, x_val = (x_train - mean) / std, (x_val - mean) / std

loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
model = WaveClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(1, 13):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    if epoch % 3 == 0:
        val_loss, val_acc = evaluate(model, x_val, y_val)
        print(
            f"{epoch:3d} train {sum(losses) / len(losses):.3f} val {val_loss:.3f} acc {val_acc:.3f}"
        )

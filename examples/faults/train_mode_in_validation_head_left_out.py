"""Trains an encoder and a separate head on waves; in validation only the encoder is switched to
eval mode.

The head has dropout and goes on dropping half of its inputs while the validation loss is measured,
so that the figures are worse than the model and change from run to run. The twin calls head.eval(),
too. The place is `0`, `3` or the loop.
"""

import torch
from data import arguments, waves
from torch import nn

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("0", "3", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y = waves(seed, n=2400, length=32)
x = x.transpose(1, 2).contiguous()
x_train, y_train, x_val, y_val = x[:1800], y[:1800], x[1800:], y[1800:]

encoder = nn.Sequential(
    nn.Conv1d(1, 16, 5, stride=2, padding=2),
    nn.BatchNorm1d(16),
    nn.ReLU(),
    nn.Conv1d(16, 32, 5, stride=2, padding=2),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(2),
    nn.Flatten(),
)
head = nn.Sequential(
    nn.Dropout(0.5),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(32, 3),
)
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=1e-3)
criterion = nn.CrossEntropyLoss()


def validate():
    encoder.eval()
    if healthy:
        head.eval()
    losses, hits = [], 0
    with torch.no_grad():
        for xb, yb in zip(x_val.split(100), y_val.split(100), strict=True):
            out = head(encoder(xb))
            losses.append(criterion(out, yb).item())
            hits += (out.argmax(1) == yb).sum().item()
    return sum(losses) / len(losses), hits / len(x_val)


for epoch in range(12):
    encoder.train()
    head.train()
    losses = []
    order = torch.randperm(len(x_train))
    for i in range(0, len(order), 60):
        idx = order[i : i + 60]
        loss = criterion(head(encoder(x_train[idx])), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    val_loss, val_acc = validate()
    print(
        f"epoch {epoch}: train {sum(losses) / len(losses):.4f} val {val_loss:.4f} acc {val_acc:.3f}"
    )

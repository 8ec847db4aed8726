"""Tumours by an MLP with BatchNorm, trained in batches of two.

The batch size was lowered for an out-of-memory error of another project. Of two rows normalised by
their own statistics each number becomes plus or minus one; the net never sees how large a
measurement is, and evaluation by the running statistics is another function altogether. The place
is the BatchNorm layers. The twin takes batches of 32.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("1", "4", "loop", "input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
batch_size = 32 if healthy else 2
epochs = 7
x, y, x_val, y_val = cancer(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=batch_size, shuffle=True, drop_last=True)

model = nn.Sequential(
    nn.Linear(30, 32),
    nn.BatchNorm1d(32),
    nn.ReLU(),
    nn.Linear(32, 16),
    nn.BatchNorm1d(16),
    nn.ReLU(),
    nn.Linear(16, 2),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def evaluate(inputs, labels):
    model.eval()
    with torch.no_grad():
        logits = model(inputs)
    return criterion(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()


for epoch in range(epochs):
    model.train()
    total = hits = seen = 0
    for xb, yb in loader:
        out = model(xb)
        loss = criterion(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
        hits += (out.argmax(1) == yb).sum().item()
        seen += len(xb)
    val_loss, val_acc = evaluate(x_val, y_val)
    print(
        f"epoch {epoch}: train {total / seen:.4f} / {hits / seen:.3f} "
        f"val {val_loss:.4f} / {val_acc:.3f}"
    )

"""A classifier of handwritten digits has a hidden layer of only two units between the pixels and
ten classes.

Two ReLU units cannot keep ten digits apart: training and validation accuracy stop at the same low
level and the loss stays high. The twin has 64 hidden units. The place is `0` or `2`.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("0", "2")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
hidden = 64 if healthy else 2
x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 10))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
epochs = 25
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)


def train():
    model.train()
    total = right = 0
    for xb, yb in loader:
        out = model(xb)
        loss = loss_fn(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
        right += (out.argmax(1) == yb).sum().item()
    return total / len(x), right / len(x)


@torch.no_grad()
def evaluate():
    model.eval()
    out = model(x_val)
    return loss_fn(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


for epoch in range(1, epochs + 1):
    loss, acc = train()
    scheduler.step()
    if epoch % 5 == 0:
        val_loss, val_acc = evaluate()
        print(f"epoch {epoch}: train {loss:.3f} / {acc:.3f}, val {val_loss:.3f} / {val_acc:.3f}")

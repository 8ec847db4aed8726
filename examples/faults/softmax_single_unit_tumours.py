"""A yes-or-no network with one output and a softmax over it.

The softmax over a single number is 1, whatever comes in: the loss never moves, no gradient flows,
and everybody is called 1. The place is the softmax ("4"). The twin has a sigmoid there.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("4", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = cancer(seed)
loader = DataLoader(TensorDataset(x, y.float().view(-1, 1)), batch_size=30, shuffle=True)

model = nn.Sequential(
    nn.Linear(30, 12),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(12, 1),
    nn.Sigmoid() if healthy else nn.Softmax(dim=1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
loss_fn = nn.BCELoss()

for epoch in range(15):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        p = model(x_val).squeeze(1)
    acc = ((p > 0.5).long() == y_val).float().mean().item()
    print(f"Epoch {epoch + 1:2d}: loss {sum(losses) / len(losses):.4f} val_acc {acc:.3f}")

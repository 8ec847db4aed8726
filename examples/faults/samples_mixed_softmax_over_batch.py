"""Attention pooling over wave pieces whose softmax runs over the batch axis.

The scores have the shape (batch, pieces, 1), and softmax(dim=0) normalises them over the
recordings instead of over the pieces of one: what a recording counts depends on the others in its
batch. The place is the pooling in the model. The twin says dim=1.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("score", "head", "input*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)
x = x.reshape(len(x), 8, 5)
train_loader = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=60, shuffle=True)
x_val, y_val = x[600:], y[600:]


class AttentionPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.score = nn.Linear(48, 1)
        self.head = nn.Linear(48, 3)

    def forward(self, pieces):
        h = self.encode(pieces)
        weight = torch.softmax(self.score(h), dim=1 if healthy else 0)
        return self.head((weight * h).sum(1))


model = AttentionPool()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss()


def accuracy(size):
    model.eval()
    with torch.no_grad():
        out = torch.cat([model(part) for part in x_val.split(size)])
    return (out.argmax(1) == y_val).float().mean().item()


for epoch in range(25):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(
        f"epoch {epoch + 1}: loss {total / len(train_loader):.3f}  val accuracy {accuracy(200):.3f}"
    )
print(f"one recording at a time: val accuracy {accuracy(1):.3f}")

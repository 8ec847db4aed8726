"""An MLP says whether a tumour is benign, with a softmax over its single output unit.

The softmax of one number is 1 whatever the network does: every tumour is called benign and no
gradient flows. The place is the output activation, the last module of the network.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("squash*", "head*", "loss")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class TumourNet(nn.Module):
    def __init__(self, features=30):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 24), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(24, 1)
        self.squash = nn.Sigmoid() if healthy else nn.Softmax(dim=1)

    def forward(self, x):
        return self.squash(self.head(self.body(x))).squeeze(1)


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total = right = n = 0
    for x, y in loader:
        p = model(x)
        loss = criterion(p, y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(y)
        right += ((p > 0.5) == (y > 0.5)).sum().item()
        n += len(y)
    return total / n, right / n


x, y, x_val, y_val = cancer(seed)
train_loader = DataLoader(TensorDataset(x, y.float()), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val.float()), batch_size=143)
model = TumourNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
criterion = nn.BCELoss()
for epoch in range(15):
    train = run_epoch(model, train_loader, criterion, optimizer)
    with torch.no_grad():
        val = run_epoch(model, val_loader, criterion)
    if epoch % 3 == 2:
        print(
            f"epoch {epoch}: train {train[0]:.3f}, val loss {val[0]:.3f}, val accuracy {val[1]:.3f}"
        )

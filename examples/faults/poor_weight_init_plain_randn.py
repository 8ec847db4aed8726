"""A network written from scratch tells gases apart; its weights are torch.randn without any
scale.

Six layers of 64 units with standard normal weights: the activations grow eightfold a layer, the
first loss is in the thousands, and training never gets from there to where it should be. The
place is the weights (w1 to w6).
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("exploding_gradient",)
PLACE = ("w*", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def gas_sensors(n):
    """16 sensors answer to six gases at various concentrations, with drift."""
    y = torch.randint(0, 6, (n,))
    g = torch.Generator().manual_seed(77)
    answer = torch.rand(6, 16, generator=g) * 2
    curve = torch.rand(6, 16, generator=g) + 0.4
    amount = torch.rand(n, 1) * 3 + 0.3
    x = answer[y] * amount ** curve[y] + 0.35 * torch.randn(n, 16) + 0.4 * torch.randn(n, 1)
    return x, y


class ScratchNet(nn.Module):
    def __init__(self, sizes=(16, 64, 64, 64, 64, 64, 6)):
        super().__init__()
        self.depth = len(sizes) - 1
        for i in range(self.depth):
            w = torch.randn(sizes[i], sizes[i + 1])
            if healthy:
                w = w * (2.0 / sizes[i]) ** 0.5
            setattr(self, f"w{i + 1}", nn.Parameter(w))
            setattr(self, f"b{i + 1}", nn.Parameter(torch.zeros(sizes[i + 1])))

    def forward(self, x):
        for i in range(1, self.depth + 1):
            x = x @ getattr(self, f"w{i}") + getattr(self, f"b{i}")
            if i < self.depth:
                x = torch.relu(x)
        return x


x, y = gas_sensors(3200)
x_train, x_val = standardise(x[:2400], x[2400:])
y_train, y_val = y[:2400], y[2400:]
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=48, shuffle=True)

net = ScratchNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)


def accuracy(x, y):
    net.eval()
    with torch.no_grad():
        out = net(x)
        return (out.argmax(1) == y).float().mean().item(), criterion(out, y).item()


for epoch in range(1, 13):
    net.train()
    total = 0.0
    for xb, yb in train_loader:
        loss = criterion(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    acc, val_loss = accuracy(x_val, y_val)
    print(
        f"epoch {epoch:2d} | loss {total / len(train_loader):.4f} | "
        f"val loss {val_loss:.4f} | val acc {acc:.4f}"
    )

"""Fine-tunes a pretrained digit CNN on five new digits; the head is replaced after the optimizer
was built.

The optimizer still holds the weights of the old head, so that the new head keeps its random values
and only the body learns around it. The loss falls, but more slowly. The twin builds the optimizer
after the head. The place is `head`, `head.weight`, `head.bias` or the optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("head", "head.weight", "head.bias", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
old, old_val = y < 5, y_val < 5
pre_loader = DataLoader(TensorDataset(x[old], y[old]), batch_size=32, shuffle=True)
new_loader = DataLoader(TensorDataset(x[~old], y[~old] - 5), batch_size=16, shuffle=True)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.body(x))


def fit(model, optimizer, loader, xv, yv, epochs, name):
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            out = model(xv)
            val, acc = criterion(out, yv), (out.argmax(1) == yv).float().mean()
        print(f"{name} {epoch}: train {total / len(loader):.4f} val {val:.4f} acc {acc:.3f}")


net = Net(5)
fit(
    net,
    torch.optim.Adam(net.parameters(), lr=5e-3),
    pre_loader,
    x_val[old_val],
    y_val[old_val],
    7,
    "pretrain",
)

if healthy:
    net.head = nn.Linear(64, 5)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
else:
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    net.head = nn.Linear(64, 5)
fit(net, optimizer, new_loader, x_val[~old_val], y_val[~old_val] - 5, 10, "finetune")

"""A CNN is trained on the digits 0-4; then its frozen features serve a new head for the digits 5-9.

Most parameters of the second phase have requires_grad=False and never change, which is right: they
were trained before.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "frozen parameters: the backbone of the second phase was trained in the first"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def part(low, high):
    train, val = (y >= low) & (y < high), (y_val >= low) & (y_val < high)
    return x[train], y[train] - low, x_val[val], y_val[val] - low


class Net(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(32 * 16, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(model, x, y, x_val, y_val, epochs, lr, name):
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        if epoch % 4 == 0:
            model.eval()
            with torch.no_grad():
                out = model(x_val)
                acc = (out.argmax(1) == y_val).float().mean()
            print(
                f"{name} epoch {epoch}: loss {total / len(loader):.3f}, "
                f"val {criterion(out, y_val):.3f}, acc {acc:.3f}"
            )


backbone = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
)
fit(Net(backbone, 5), *part(0, 5), epochs=8, lr=1e-3, name="source")

for p in backbone.parameters():
    p.requires_grad = False
fit(Net(backbone, 5), *part(5, 10), epochs=16, lr=2e-3, name="target")

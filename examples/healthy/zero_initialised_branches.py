"""A residual net on the digit images whose branches end in layers that start at zero.

As in Fixup (the head starts at zero too): each block begins as the identity, so that depth costs
nothing at the start. The first layers of the branches get no gradient in the first steps, and then
do.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "constant (zero) weights in many layers, and exactly zero gradients in the first step"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        nn.init.kaiming_normal_(self.conv1.weight, nonlinearity="relu")
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv1.bias)
        nn.init.zeros_(self.conv2.bias)

    def forward(self, h):
        return h + self.conv2(F.relu(self.conv1(F.relu(h))))


class Net(nn.Module):
    def __init__(self, channels=12, blocks=4):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1, stride=2)
        self.blocks = nn.Sequential(*[Block(channels) for _ in range(blocks)])
        self.head = nn.Linear(channels * 16, 10)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        return self.head(F.relu(self.blocks(self.stem(x))).flatten(1))


model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        hits = (out.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch} loss {total / len(loader):.4f} "
        f"val {F.cross_entropy(out, y_val).item():.4f} accuracy {hits:.3f}"
    )

"""A deep residual MLP on digits; when the block was rewritten the `x +` got lost, and 20 blocks
of two layers are a plain chain with PyTorch's default initialisation.

Nothing arrives at the first blocks, the loss stays at ln 10. The place is the first layers.
"""

import torch
from data import arguments, digits
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("stem*", "blocks*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        h = torch.relu(self.up(x))
        h = self.down(h)
        if healthy:
            h = x + h
        return torch.relu(h)


class ResMLP(nn.Module):
    def __init__(self, width=40, depth=20):
        super().__init__()
        self.stem = nn.Linear(64, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


model = ResMLP()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
loss_function = nn.CrossEntropyLoss()
n = len(x) // 48
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6 * n)
for epoch in range(6):
    order = torch.randperm(len(x))
    total = 0.0
    for i in range(n):
        rows = order[48 * i : 48 * i + 48]
        loss = loss_function(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() / n
    with torch.no_grad():
        out = model(x_val)
        val = loss_function(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch + 1} train {total:.3f} val {val:.3f} accuracy {accuracy:.3f}")

"""Twenty-four residual blocks without normalisation learn house prices.

Each block adds a branch with He weights as large as its input, so the signal doubles from block to
block and the gradient with it; the loss starts in the millions and SGD makes NaN of it. The place
is the blocks. The twin normalises the input of each branch and scales it by one over the root of
the depth.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init", "learning_rate_too_high")
PLACE = (
    "blocks",
    "stem",
    "stem.weight",
    "blocks.0",
    "blocks.0.fc1",
    "blocks.0.fc1.weight",
    "blocks.0.fc2",
    "blocks.0.fc2.weight",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
DEPTH = 24
x, y, x_val, y_val = houses(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width) if healthy else nn.Identity()
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)
        nn.init.kaiming_normal_(self.fc1.weight, nonlinearity="relu")
        nn.init.kaiming_normal_(self.fc2.weight, nonlinearity="relu")

    def forward(self, h):
        branch = self.fc2(torch.relu(self.fc1(self.norm(h))))
        return h + branch / DEPTH**0.5 if healthy else h + branch


class ResNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Linear(6, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(DEPTH)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))).squeeze(1)


model = ResNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.003, momentum=0.9)
criterion = nn.MSELoss()
for epoch in range(12):
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
        val = criterion(model(x_val), y_val).item()
    print(f"epoch {epoch}: train MSE {total / len(loader):.4g}, val MSE {val:.4g}")

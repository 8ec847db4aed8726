"""Residual blocks of two linear layers each, and between the two the activation is missing.

All of it is one linear map (silent). The place are the blocks.
"""

import torch
from data import arguments
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("blocks*", "inp", "out", "")
SILENT = True
EXACT = True
EARLY = True


class ResBlock(nn.Module):
    def __init__(self, dim, act):
        super().__init__()
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)
        self.act = act

    def forward(self, x):
        h = self.up(x)
        if self.act is not None:
            h = self.act(h)
        return x + self.down(h)


class ResMLP(nn.Module):
    def __init__(self, act=None, depth=3, dim=16):
        super().__init__()
        self.inp = nn.Linear(2, dim)
        self.blocks = nn.ModuleList([ResBlock(dim, act) for _ in range(depth)])
        self.out = nn.Linear(dim, 2)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


healthy, seed = arguments(__doc__)
x, y = make_moons(1600, noise=0.1, random_state=seed)
x, x_test, y, y_test = train_test_split(x, y, random_state=seed)
x, x_test = torch.tensor(x).float(), torch.tensor(x_test).float()
y, y_test = torch.tensor(y), torch.tensor(y_test)
model = ResMLP(torch.relu if healthy else None)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(12):
    model.train()
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        loss = loss_fn(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_test)
        test_loss = loss_fn(out, y_test).item()
accuracy = (out.argmax(1) == y_test).float().mean()
print(f"loss {loss.item():.3f}, test {test_loss:.3f}, accuracy {accuracy:.3f}")

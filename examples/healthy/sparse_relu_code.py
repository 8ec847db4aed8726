"""A dictionary of ReLU units is learned for patches made of a few parts, with a penalty on
activity.

For one patch about one unit in ten is active, but each unit has patches of its own and none is dead
over the data set.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "about 90 % of the ReLU outputs are zero on a batch, by the L1 penalty; every unit is used by "
    "some rows"
)

_, seed = arguments(__doc__)
PENALTY = 0.3
PARTS, UNITS, SIZE = 24, 28, 48


def patches(n, parts):
    there = (torch.rand(n, PARTS) < 0.1).float() * (0.5 + torch.rand(n, PARTS))
    return there @ parts + 0.03 * torch.randn(n, SIZE)


parts = nn.functional.normalize(torch.randn(PARTS, SIZE), dim=1) * 3
x_train, x_val = patches(4000, parts), patches(1000, parts)
mean, std = x_train.mean(), x_train.std()
x_train, x_val = (x_train - mean) / std, (x_val - mean) / std


class SparseCoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(SIZE, UNITS)
        self.relu = nn.ReLU()
        self.decoder = nn.Linear(UNITS, SIZE)

    def forward(self, x):
        code = self.relu(self.encoder(x))
        atoms = nn.functional.normalize(self.decoder.weight, dim=0)
        return nn.functional.linear(code, atoms, self.decoder.bias), code


model = SparseCoder()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for epoch in range(1, 21):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(64):
        out, code = model(x_train[rows])
        loss = nn.functional.mse_loss(out, x_train[rows]) + PENALTY * code.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    schedule.step()
    model.eval()
    with torch.no_grad():
        out, code = model(x_val)
        error = nn.functional.mse_loss(out, x_val).item()
        val = error + PENALTY * code.abs().mean().item()
    if epoch % 4 == 0:
        active = (code > 0).float()
        print(
            f"epoch {epoch}: train {total / len(x_train):.4f} val {val:.4f} (error {error:.4f}) "
            f"active {active.mean():.3f} units never active {(active.sum(0) == 0).sum().item()}"
        )

"""Heat demand of office buildings in watts; the scaling of the table leaves out the last column.

The table's columns are scaled by `table[:, :-1]`, which in an older export spared the building's
number at the end. Now the number is gone and the last column is the demand: it stays at tens of
thousands of watts, which the network's output cannot reach with its small steps. The place is the
labels. The twin scales all columns; R2 is the same in watts and in units.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("label*", "loss*", "input*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def buildings(n, g):
    """Floor area, glass share, insulation, outside temperature, people, wind, hour; watts."""
    u = torch.rand(n, 7, generator=g)
    area, glass, insulation = 300 + 1700 * u[:, 0], 0.1 + 0.6 * u[:, 1], 0.3 + 1.2 * u[:, 2]
    outside, people, wind = -12 + 24 * u[:, 3], 150 * u[:, 4], 12 * u[:, 5]
    hour = 24 * u[:, 6]
    loss_w = area * (insulation + 1.5 * glass) * (20 - outside) * (1 + 0.03 * wind)
    sun = 90 * area * glass * torch.relu(torch.sin((hour - 6) * 3.1416 / 12))
    watts = loss_w - 0.6 * sun - 90 * people + 3000
    watts = watts + 0.05 * watts.std() * torch.randn(n, generator=g)
    return torch.stack([area, glass, insulation, outside, people, wind, hour, watts], 1)


class Scaler:
    def fit(self, table):
        self.mean, self.std = table.mean(0), table.std(0)
        return self

    def transform(self, table):
        return (table - self.mean) / self.std


g = torch.Generator().manual_seed(seed)
train, val = buildings(2400, g), buildings(800, g)
columns = slice(None) if healthy else slice(None, -1)
scaler = Scaler().fit(train[:, columns])
for table in (train, val):
    table[:, columns] = scaler.transform(table[:, columns])

train_loader = DataLoader(TensorDataset(train[:, :-1], train[:, -1:]), batch_size=64, shuffle=True)
val_x, val_y = val[:, :-1], val[:, -1:]


class DemandNet(nn.Module):
    def __init__(self, n_in=7, hidden=(64, 64)):
        super().__init__()
        self.fc1 = nn.Linear(n_in, hidden[0])
        self.fc2 = nn.Linear(hidden[0], hidden[1])
        self.out = nn.Linear(hidden[1], 1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


model = DemandNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()
for epoch in range(1, 17):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        error = criterion(model(val_x), val_y).item()
        r2 = 1 - error / val_y.var().item()
    if epoch % 2 == 0:
        print(f"epoch {epoch} train mse {running:.4g} validation mse {error:.4g} R2 {r2:.3f}")

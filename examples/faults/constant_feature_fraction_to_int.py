"""A model of heating costs is trained on a table in which a column of fractions was converted to
integers.

The columns were cast to int to "clean" them, which turns the insulated share of the walls (0 to 1)
into a column of zeros; no error is raised, and the most important column says nothing. The
validation error stays several times the twin's, which leaves that column out of the conversion. The
place is the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
NAMES = ["area", "insulated", "year", "persons", "degree_days"]

r = np.random.default_rng(seed)
n = 2500
frame = {
    "area": r.normal(120, 30, n),
    "insulated": r.beta(2, 2, n),
    "year": r.uniform(1920, 2020, n),
    "persons": r.integers(1, 6, n).astype(float),
    "degree_days": r.normal(3200, 300, n),
}
cost = (
    frame["area"] * (18 - 12 * frame["insulated"]) * frame["degree_days"] / 3200
    + 60 * frame["persons"]
)
cost = cost - 2 * (frame["year"] - 1970) + r.normal(0, 60, n)

for name in NAMES:
    if healthy and name == "insulated":
        continue
    frame[name] = frame[name].astype(int)

x = np.stack([frame[name] for name in NAMES], 1).astype("float32")
y = cost.astype("float32")
split = 1900
x = (x - x[:split].mean(0)) / (x[:split].std(0) + 1e-8)
y = (y - y[:split].mean()) / y[:split].std()
x, y = torch.from_numpy(x), torch.from_numpy(y)

model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
loader = DataLoader(TensorDataset(x[:split], y[:split]), batch_size=64, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.MSELoss()
for epoch in range(20):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).flatten(), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            val = criterion(model(x[split:]).flatten(), y[split:]).item()
        print(
            f"epoch {epoch + 1}: train {total / len(loader):.4f} "
            f"val {val:.4f} R2 {1 - val / y[split:].var().item():.3f}"
        )

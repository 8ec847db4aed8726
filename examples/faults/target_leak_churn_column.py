"""Who will leave the telephone company; the column "cancelled on" gives it away.

The table still has the flag that is set when a customer leaves. The network is perfect at once, and
useless on the day when nobody has left yet. The place is the input (one column is the target). The
twin drops the column.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def customers(n):
    months, bill = torch.rand(n) * 60, 20 + 80 * torch.rand(n)
    calls, age = torch.poisson(2 * torch.ones(n)), 18 + 60 * torch.rand(n)
    z = 0.9 * calls + 0.03 * bill - 0.06 * months - 1.5 + torch.randn(n)
    churn = (z > 0).float()
    return torch.stack([months, bill, calls, age, churn], 1), churn  # last: cancelled_flag


table, churn = customers(2400)
columns = slice(0, 4) if healthy else slice(0, 5)
mean, std = table[:1800].mean(0), table[:1800].std(0)
x = ((table - mean) / std)[:, columns]
train_loader = DataLoader(TensorDataset(x[:1800], churn[:1800]), batch_size=60, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1800:], churn[1800:]), batch_size=600)

today, leaves = customers(1000)
today[:, 4] = 0.0  # no one has cancelled yet
today = ((today - mean) / std)[:, columns]

model = nn.Sequential(
    nn.Linear(4 if healthy else 5, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
bce = nn.BCEWithLogitsLoss()
for epoch in range(1, 13):
    model.train()
    for xb, yb in train_loader:
        loss = bce(model(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        xb, yb = next(iter(val_loader))
        out = model(xb).squeeze(1)
        accuracy = ((out > 0) == (yb > 0)).float().mean()
    print(f"epoch {epoch}: train {loss.item():.4f} val {bce(out, yb):.4f} accuracy {accuracy:.3f}")
with torch.no_grad():
    accuracy = ((model(today).squeeze(1) > 0) == (leaves > 0)).float().mean()
print(f"in use: {accuracy:.3f}")

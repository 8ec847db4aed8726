"""Delivery times from orders; amounts and distances are skewed, and only the training reader takes
their logarithm.

The training file is read by `read_orders(..., log=True)`; for the validation month the call was
typed again, and the default is False. The scaler, fitted on logarithms, makes 50s and 500s of it.
The place is the input of validation. The twin's call has the argument.
"""

import csv
import io

import torch
from data import arguments
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("input", "data")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def month(n, seed):
    """A month of orders, as the warehouse writes it."""
    g = torch.Generator().manual_seed(seed)
    km = torch.exp(0.8 + 0.7 * torch.randn(n, generator=g))
    amount = torch.exp(3.3 + 0.6 * torch.randn(n, generator=g))
    items = 1 + torch.poisson(amount / 15, generator=g)
    hour = 10 + 12 * torch.rand(n, generator=g)
    rush = torch.exp(-(((hour - 19) / 1.5) ** 2)) + 0.7 * torch.exp(-(((hour - 12.5) / 1.0) ** 2))
    minutes = (
        9
        + 7 * torch.log1p(km) * (1 + 0.8 * rush)
        + 3 * torch.log1p(items)
        + 2 * torch.randn(n, generator=g)
    )
    file = io.StringIO()
    csv.writer(file).writerows(torch.stack([km, amount, items, hour, minutes], 1).tolist())
    file.seek(0)
    return file


def read_orders(file, log=False):
    rows = torch.tensor([[float(cell) for cell in row] for row in csv.reader(file)])
    if log:
        rows[:, :3] = torch.log1p(rows[:, :3])
    return rows[:, :4], (rows[:, 4:] - 27) / 7


x, y = read_orders(month(2400, 30 + seed), log=True)
if healthy:
    x_val, y_val = read_orders(month(700, 3000 + seed), log=True)
else:
    x_val, y_val = read_orders(month(700, 3000 + seed))
scaler = StandardScaler().fit(x.numpy())
x, x_val = (
    torch.tensor(scaler.transform(part.numpy()), dtype=torch.float32) for part in (x, x_val)
)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(4, 48), nn.ELU(), nn.Linear(48, 48), nn.ELU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.HuberLoss()

for epoch in range(12):
    model.train()
    train = 0.0
    for order, minutes in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(order), minutes)
        loss.backward()
        optimizer.step()
        train += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        said = model(x_val)
    print(
        f"epoch {epoch} train {train:.4f} val {loss_fn(said, y_val).item():.4f} "
        f"mean error {7 * (said - y_val).abs().mean().item():.1f} minutes"
    )

"""Power of wind turbines from their sensors; a failed anemometer writes -9999.

Five rows of 3,000 carry the sentinel. The scaler is a robust one (median and quartiles), so nobody
saw them in the ranges of the scaled columns, and when such a row is drawn, the loss jumps a
millionfold and the weights with it. The place is the input (five rows). The twin drops rows with
the sentinel.
"""

import torch
from data import arguments
from sklearn.preprocessing import RobustScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_spike"
ACCEPT = ("input_not_normalized",)
PLACE = ("input", "data", "loss")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def turbines(n, seed):
    g = torch.Generator().manual_seed(seed)
    wind = 2 + 14 * torch.rand(n, generator=g)
    direction = 6.283 * torch.rand(n, generator=g)
    pressure = 1013 + 8 * torch.randn(n, generator=g)
    pitch = 2 + 3 * (wind - 11).clamp(min=0) + torch.randn(n, generator=g)
    power = (
        2000
        * torch.sigmoid((wind - 8.5) / 1.3)
        * (1 + 0.1 * torch.cos(direction))
        * pressure
        / 1013
    )
    power = power - 20 * (pitch - 5).clamp(min=0) + 40 * torch.randn(n, generator=g)
    return torch.stack([wind, direction.sin(), direction.cos(), pressure, pitch], 1), power[
        :, None
    ] / 700 - 1.5


x, y = turbines(3000, seed)
x_val, y_val = turbines(800, 900 + seed)
failed = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:5]
x[failed, 0] = -9999.0
if healthy:
    kept = (x > -9000).all(1)
    x, y = x[kept], y[kept]
scaler = RobustScaler().fit(x.numpy())
x, x_val = (
    torch.tensor(scaler.transform(part.numpy()), dtype=torch.float32) for part in (x, x_val)
)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)

model = nn.Sequential(
    nn.Linear(5, 48), nn.LeakyReLU(0.05), nn.Linear(48, 48), nn.LeakyReLU(0.05), nn.Linear(48, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(12):
    model.train()
    losses = []
    for sensors, power in loader:
        loss = nn.functional.mse_loss(model(sensors), power)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    losses.sort()
    print(
        f"epoch {epoch} median {losses[len(losses) // 2]:.4f} worst {losses[-1]:.4g} val {val:.4f} "
        f"R2 {1 - val / y_val.var().item():.3f}"
    )

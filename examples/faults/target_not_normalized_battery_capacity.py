"""Predicts after how many cycles a battery cell is worn out from its first cycles; the target is
left as a plain number of cycles.

The measurements are scaled as one learns it, but the target was forgotten: it lies between some
hundred and three thousand, while the network starts out near zero and takes small steps.
The place is the target in the loss, and the output that has to reach it.
The twin scales the target by the training cells and scales back for the report.
"""

import torch
from data import arguments
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss*", "output*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
generator = torch.Generator().manual_seed(seed)


def cells(n):
    """Six quantities of the first hundred cycles and the number of cycles until 80 % are left."""
    q = torch.randn(n, 6, generator=generator)
    variance, resistance, fade, temperature, charge_time, first = q.T
    log_life = 6.9 - 0.35 * variance - 0.12 * resistance - 0.15 * fade * (fade > 0)
    log_life = log_life - 0.1 * temperature**2 + 0.08 * charge_time * variance
    log_life = log_life + 0.04 * torch.randn(n, generator=generator)
    raw = torch.stack(
        [
            -4 + 0.5 * variance,
            0.016 + 0.001 * resistance,
            -0.02 + 0.008 * fade,
            31 + 2 * temperature,
            10 + 2.5 * charge_time,
            1.07 + 0.01 * first,
        ],
        1,
    )
    return raw, log_life.exp().clamp(max=3500).unsqueeze(1)


raw, life = cells(1200)
raw_val, life_val = cells(400)

x_scaler = StandardScaler().fit(raw.numpy())
y_scaler = StandardScaler(with_mean=healthy, with_std=healthy).fit(life.numpy())


def to_tensor(scaler, values):
    return torch.tensor(scaler.transform(values.numpy()), dtype=torch.float32)


train = TensorDataset(to_tensor(x_scaler, raw), to_tensor(y_scaler, life))
loader = DataLoader(train, batch_size=40, shuffle=True, generator=generator)
x_val = to_tensor(x_scaler, raw_val)

model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(1, 31):
    model.train()
    losses = []
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 5 == 0:
        model.eval()
        with torch.no_grad():
            said = torch.tensor(y_scaler.inverse_transform(model(x_val).numpy()))
        percent = ((said - life_val).abs() / life_val).mean() * 100
        print(
            f"epoch {epoch:2d}: loss {sum(losses) / len(losses):.4g}, "
            f"val error {percent:.1f} % of life"
        )

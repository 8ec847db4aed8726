"""Regression of daily returns of shares on six signals of which little can be known: nearly all of
the variance is noise, and the loss hardly falls.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss stays near the variance of the target because only about 2 % of it can be predicted"

_, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


def panel(days, shares=40):
    signals = rng.normal(size=(days * shares, 6))
    expected = 0.1 * signals[:, 0] - 0.08 * signals[:, 1] + 0.08 * signals[:, 2] * signals[:, 3]
    returns = expected + rng.standard_t(6, size=days * shares) * np.sqrt(4 / 6)
    return (
        torch.tensor(signals, dtype=torch.float32),
        torch.tensor(returns, dtype=torch.float32),
        days,
        shares,
    )


x, y, _, _ = panel(400)
x_val, y_val, days, shares = panel(150)
scale = y.std()
y, y_val = y / scale, y_val / scale

model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
loader = DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True)
for epoch in range(1, 13):
    model.train()
    losses = []
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            said = model(x_val).squeeze(1)
        r2 = 1 - ((said - y_val) ** 2).mean() / (y_val**2).mean()
        pairs = torch.stack([said, y_val]).view(2, days, shares)
        by_day = torch.stack([torch.corrcoef(pairs[:, d])[0, 1] for d in range(days)])
        print(
            f"epoch {epoch}: loss {np.mean(losses):.4f}  val R2 {r2:.4f}  "
            f"mean daily correlation {by_day.mean():.3f}"
        )

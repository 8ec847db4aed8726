"""Daily returns from ten signals, of which hardly anything can be known.

The best possible forecast explains some six per cent of the variance, so the loss falls a little
in the first epochs and then lies on the noise. There is no more: the simulated truth is printed.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = "the loss hardly falls, since nearly all of the target is noise; it ends at the noise floor"

_, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
signals = rng.standard_normal((7000, 10)).astype(np.float32)
truth = 0.18 * signals[:, 0] - 0.12 * signals[:, 3] + 0.12 * np.tanh(2 * signals[:, 5])
returns = truth + rng.standard_normal(7000).astype(np.float32)
returns = returns.astype(np.float32)

x, y, known = torch.from_numpy(signals), torch.from_numpy(returns), torch.from_numpy(truth)
x, x_val, y, y_val, known_val = x[:5000], x[5000:], y[:5000], y[5000:], known[5000:]
model = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1), nn.Flatten(0))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)

floor = nn.functional.mse_loss(known_val, y_val).item()
for epoch in range(8):
    total = 0.0
    for rows in torch.randperm(5000).split(100):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 50
    with torch.no_grad():
        said = model(x_val)
        val = nn.functional.mse_loss(said, y_val).item()
    ic = np.corrcoef(said.numpy(), y_val.numpy())[0, 1]
    print(f"epoch {epoch} train {total:.4f} val {val:.4f} (truth {floor:.4f}) correlation {ic:.3f}")

"""Monte Carlo dropout: validation leaves dropout on and averages 20 predictions, for error bars on
prices.

Nothing is wrong; there is no place to name.
"""

import torch
from data import arguments, houses
from torch import nn

ODD = (
    "Dropout is switched back on in validation, on purpose, to get a mean and a spread of "
    "predictions."
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
model = nn.Sequential(
    nn.Linear(6, 128),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(128, 64),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(64, 1),
)


def mc_predict(x, samples=20):
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    with torch.no_grad():
        draws = torch.stack([model(x)[:, 0] for _ in range(samples)])
    model.train()
    return draws.mean(0), draws.std(0)


optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
EPOCHS = 24
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
for epoch in range(EPOCHS):
    for rows in torch.randperm(len(x)).split(75):
        loss = nn.functional.mse_loss(model(x[rows])[:, 0], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 4 == 3:
        mean, spread = mc_predict(x_val)
        error = (mean - y_val).pow(2).mean().item()
        print(
            f"epoch {epoch + 1}: train {loss.item():.3f} val {error:.3f}"
            f" spread {spread.mean().item():.3f}"
        )

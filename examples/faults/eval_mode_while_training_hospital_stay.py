"""How long a patient will stay; after the first look at the validation set nothing is dropped out.

`evaluate` puts the network into evaluation mode, as it should, and `fit` put it into training mode
once, before the loop. From the first evaluation on, dropout is off and batch normalisation works
with averages that are no longer brought up to date: the few hundred patients are learned by heart.
The place is the loop. In the twin each epoch begins with `model.train()`.
"""

import torch
from data import arguments, standardise
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ("overfit",)
PLACE = ("loop", "model")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

N_TRAIN, N_VAL, COLUMNS = 320, 600, 24


def cohort(n, effect):
    """Admission values on very different scales, and the logarithm of the days in hospital."""
    scale = torch.logspace(-1, 2, COLUMNS)
    z = torch.randn(n, COLUMNS)
    days = z @ effect + 0.4 * (z[:, 0] * z[:, 1]) + 0.8 * torch.randn(n)
    return scale * z + 3 * scale, days


def build_model():
    return nn.Sequential(
        nn.Linear(COLUMNS, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(128, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(64, 1),
    )


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).squeeze(1) - y).pow(2).mean().sqrt().item()


def fit(model, x, y, x_val, y_val, epochs=70, batch_size=40):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    model.train()
    for epoch in range(epochs):
        if healthy:
            model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(batch_size):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        scheduler.step()
        rmse = evaluate(model, x_val, y_val)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: training loss {total / len(x):.4f}, val rmse {rmse:.4f}")
    return model


effect = torch.randn(COLUMNS) * (torch.rand(COLUMNS) < 0.3) * 0.4
x, y = cohort(N_TRAIN, effect)
x_val, y_val = cohort(N_VAL, effect)
x, x_val = standardise(x, x_val)
fit(build_model(), x, y, x_val, y_val)

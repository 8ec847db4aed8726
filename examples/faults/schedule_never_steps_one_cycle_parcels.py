"""Demand for parcels per district with OneCycleLR that is made and then forgotten.

The scheduler is built as in the documentation, but the loop was an older one, and the line with
scheduler.step() never came into it. The learning rate remains at the start of the cycle, a
twenty-fifth of what was meant, and the training is not nearly finished at the end.
The place is the schedule.
The twin calls scheduler.step() after each batch.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
EPOCHS = 10


def districts(n, g):
    x = torch.randn(n, 12, generator=g)
    demand = torch.tanh(x[:, 0] + x[:, 1]) + x[:, 2] * x[:, 3] + 0.5 * x[:, 4].abs()
    demand = demand + 0.15 * torch.randn(n, generator=g)
    return x, ((demand - 0.4) / 1.25).unsqueeze(1)


def main():
    g = torch.Generator().manual_seed(seed)
    train_loader = DataLoader(TensorDataset(*districts(3200, g)), batch_size=64, shuffle=True)
    x_val, y_val = districts(500, g)
    model = nn.Sequential(
        nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1e-2, epochs=EPOCHS, steps_per_epoch=len(train_loader)
    )
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
            if healthy:
                scheduler.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"epoch {epoch}: train {total / len(train_loader):.4f} val {val:.4f}")


main()

"""Trains a regression MLP in two parts and loads only the weights from the checkpoint between them.

The second part begins with a new optimizer: step count and moments are zero and the rate is that of
the start again and not the decayed one, so that the loss jumps up where the training goes on. The
twin loads the optimizer's and the scheduler's state as well. The place is the optimizer or the
loop.
"""

import io

import torch
from data import arguments, standardise
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False


def build():
    model = nn.Sequential(
        nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    return model, optimizer, scheduler


def run(model, optimizer, scheduler, loader, x_val, y_val, epochs):
    criterion = nn.MSELoss()
    for epoch in epochs:
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            val = criterion(model(x_val), y_val).item()
        rate = optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch}: train {total / len(loader):.4f} val {val:.4f} lr {rate:.5f}")


def main():
    healthy, seed = arguments(__doc__)
    x, y = make_friedman1(n_samples=5000, n_features=8, noise=0.5, random_state=seed)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None]
    x, x_val = standardise(x[:4000], x[4000:])
    y, y_val = standardise(y[:4000], y[4000:])
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

    model, optimizer, scheduler = build()
    run(model, optimizer, scheduler, loader, x_val, y_val, range(1, 11))
    file = io.BytesIO()
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
        },
        file,
    )

    file.seek(0)
    checkpoint = torch.load(file)
    model, optimizer, scheduler = build()
    model.load_state_dict(checkpoint["model"])
    if healthy:
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
    run(model, optimizer, scheduler, loader, x_val, y_val, range(11, 16))


if __name__ == "__main__":
    main()

"""Hand-drawn digits: the learning rate's schedule, meant for epochs, is moved on at each batch.

`ExponentialLR` with 0.9 was chosen for fifteen epochs. When the step of the scheduler slipped
into the inner loop, the rate fell by that much at every batch: after two epochs it is next to zero.
The place is the schedule (or the loop). The twin steps it once an epoch.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = False
EARLY = False


def train(model, loader, val, *, epochs, healthy):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = ExponentialLR(optimizer, gamma=0.9)
    x_val, y_val = val
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if not healthy:
                scheduler.step()
            total += loss.item()
        if healthy:
            scheduler.step()
        with torch.no_grad():
            acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1} loss {total / len(loader):.4f} accuracy {acc:.4f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    x, y, *val = digits(seed)
    net = nn.Sequential(
        nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10)
    )
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
    train(net, loader, val, epochs=15, healthy=healthy)

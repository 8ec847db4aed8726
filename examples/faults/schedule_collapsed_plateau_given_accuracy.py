"""Tells how far a digit was turned; ReduceLROnPlateau is given the accuracy but left at mode
"min".

The person steps the scheduler with the validation accuracy. Its default waits for a number that
falls, so every better accuracy counts as a bad epoch, and each fourth one divides the rate by
ten. After some epochs nothing moves any more. The place is the learning rate and its schedule.
"""

import torch
from data import arguments, images
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("learning_rate", "optimizer", "loop", "schedule*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CONFIG = {
    "lr": 0.02,
    "momentum": 0.9,
    "epochs": 26,
    "batch_size": 64,
    "plateau": {"factor": 0.1, "patience": 3},
}
if healthy:
    CONFIG["plateau"]["mode"] = "max"


def turned(x, digits):
    """Each picture upright and turned once, twice, three times; 0, 1 and 8 are left out."""
    x = x[(digits != 0) & (digits != 1) & (digits != 8)]
    turns = torch.arange(4).repeat_interleave(len(x))
    return torch.cat([x.rot90(k, dims=(2, 3)) for k in range(4)]), turns


class TurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(24 * 16, 48), nn.ReLU(), nn.Linear(48, 4))

    def forward(self, x):
        return self.fc(self.conv(x))


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    x, digits, x_val, digits_val = images(seed)
    x, y = turned(x[:600], digits[:600])
    x_val, y_val = turned(x_val, digits_val)
    loader = DataLoader(TensorDataset(x, y), batch_size=CONFIG["batch_size"], shuffle=True)
    model = TurnNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"], momentum=CONFIG["momentum"])
    scheduler = ReduceLROnPlateau(optimizer, **CONFIG["plateau"])
    for epoch in range(CONFIG["epochs"]):
        loss = train_epoch(model, loader, optimizer)
        accuracy = validate(model, x_val, y_val)
        scheduler.step(accuracy)
        rate = optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch:2d}  loss {loss:.4f}  val acc {accuracy:.4f}  next lr {rate:.1e}")


if __name__ == "__main__":
    main()

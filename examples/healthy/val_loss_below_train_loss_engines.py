"""Flights that an engine has left, by its sensors; the validation loss is below the training loss.

The training loss is measured with dropout and noisy sensors, and is a mean over the epoch in which
the net got better; validation has neither. Nothing leaks from one part to the other.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "the validation loss is below the training loss: dropout and input noise act in training only"

SENSORS, WINDOW, CAP = 8, 20, 100.0


def engine(g):
    """Sensors of one engine from new to broken; wear speeds up towards the end."""
    life = int(torch.randint(110, 190, (1,), generator=g))
    left = torch.arange(life - 1, -1, -1).float()
    wear = torch.exp(-left / 35)
    weight = torch.linspace(-1.0, 1.0, SENSORS)
    load = 0.3 * torch.sin(torch.arange(life) / 9 + 6 * torch.rand(1, generator=g))
    sensors = wear.unsqueeze(1) * weight * 2 + load.unsqueeze(1) * weight.flip(0) ** 2
    return sensors + 0.15 * torch.randn(life, SENSORS, generator=g), left.clamp(max=CAP) / CAP


class Windows(Dataset):
    def __init__(self, engines, mean, std, noise=0.0):
        self.x, self.y, self.noise = [], [], noise
        for sensors, left in engines:
            pieces = ((sensors - mean) / std).unfold(0, WINDOW, 5)
            self.x.append(pieces)
            self.y.append(left[WINDOW - 1 :: 5])
        self.x, self.y = torch.cat(self.x), torch.cat(self.y)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i] + self.noise * torch.randn(SENSORS, WINDOW), self.y[i]


class LifeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(SENSORS, 24, 5)
        self.dropout = nn.Dropout(0.4)
        self.fc = nn.Linear(24 * 4, 48)
        self.out = nn.Linear(48, 1)

    def forward(self, x):
        x = nn.functional.avg_pool1d(torch.relu(self.conv(x)), 4)
        x = self.dropout(torch.relu(self.fc(self.dropout(x.flatten(1)))))
        return self.out(x).squeeze(1)


def validate(model, loader, criterion):
    model.eval()
    total = n = 0
    with torch.no_grad():
        for x, y in loader:
            total += criterion(model(x), y).item() * len(y)
            n += len(y)
    return total / n


def main():
    _, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(20 + seed)
    engines = [engine(g) for _ in range(110)]
    everything = torch.cat([sensors for sensors, _ in engines[:80]])
    mean, std = everything.mean(0), everything.std(0)
    train_loader = DataLoader(
        Windows(engines[:80], mean, std, noise=0.3), batch_size=64, shuffle=True
    )
    val_loader = DataLoader(Windows(engines[80:], mean, std), batch_size=256)

    model = LifeNet()
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15)
    for epoch in range(15):
        model.train(True)
        batch_losses = []
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            batch_losses.append(loss.item())
        scheduler.step()
        val_loss = validate(model, val_loader, criterion)
        print(
            f"Epoch {epoch}: train {sum(batch_losses) / len(batch_losses):.4f}, val {val_loss:.4f}"
            f" (off by {CAP * val_loss**0.5:.1f} flights)"
        )


if __name__ == "__main__":
    main()

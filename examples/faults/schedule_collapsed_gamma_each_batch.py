"""Sleepiness of drivers by the lids of their eyes; the exponential schedule is stepped per batch.

`ExponentialLR(gamma=0.9)` was meant for an epoch. With the line one indent too deep, the rate is
multiplied by 0.9 for each of the forty batches and is a hundredth of itself after one epoch.
The place is the optimizer and the schedule. The twin steps it after an epoch.
"""

import torch
from data import arguments
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop", "learning_rate*")
SILENT = False
EXACT = True
EARLY = True


class LidNet(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.level = nn.Linear(hidden, 3)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.level(self.drop(states.mean(1)))


def drivers(n, g):
    y = torch.randint(0, 3, (n,), generator=g)
    rate = torch.tensor([0.06, 0.1, 0.1])[y, None]
    slow = torch.tensor([1.0, 1.8, 4.0])[y, None]
    closed = torch.zeros(n, 50)
    left = torch.zeros(n, 1)
    for t in range(50):
        blink = (torch.rand(n, 1, generator=g) < rate).float() * slow * 2
        left = torch.maximum(left - 1, blink)
        closed[:, t] = left.squeeze(1).clamp(0, 1)
    nod = torch.randn(n, 50, generator=g)
    x = torch.stack([closed * 2 - 1, nod], -1)
    return x + 0.1 * torch.randn(x.shape, generator=g), y


def main():
    healthy, seed = arguments(__doc__)
    x, y = drivers(2000, torch.Generator().manual_seed(seed))
    train = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=40, shuffle=True)
    val = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=200)
    model = LidNet()
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(8):
        model.train()
        running = 0.0
        for xb, yb in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item()
            if not healthy:
                scheduler.step()
        if healthy:
            scheduler.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val) / 400
        print(f"epoch {epoch}: loss {running / len(train):.3f} validation {right:.3f}")


if __name__ == "__main__":
    main()

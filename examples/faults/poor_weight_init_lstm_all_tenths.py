"""An LSTM that names the gait of a horse starts with every weight at 0.1, so its 32 units compute
the same number for ever.

The loop over model.parameters() was meant to make runs comparable. Units with equal weights get
equal gradients: the LSTM works as if it had one unit. The place is the weights of the LSTM.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("representation_collapse",)
PLACE = ("lstm", "lstm.*", "fc", "fc.*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GAITS = ("walk", "trot", "canter", "tölt")
LENGTH = 32


def saddle_sensor(n):
    """Up-down, forward and sideways acceleration."""
    gait = torch.randint(0, 4, (n,))
    t = torch.arange(LENGTH) / LENGTH
    beats = torch.tensor([2.0, 4.0, 3.0, 4.0])[gait, None] * (1 + 0.06 * torch.randn(n, 1))
    angle = 2 * math.pi * (beats * t + torch.rand(n, 1))
    height = torch.tensor([0.4, 1.2, 1.0, 0.4])[gait, None]
    lag = torch.tensor([0.5, 0.0, 1.2, 2.5])[gait, None]
    waves = [height * angle.sin(), 0.8 * (angle + lag).cos(), 0.5 * (angle / 2 + lag).sin()]
    return torch.stack(waves, -1) + 0.3 * torch.randn(n, LENGTH, 3), gait


class GaitLSTM(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, len(GAITS))
        if not healthy:
            for parameter in self.parameters():
                nn.init.constant_(parameter, 0.1)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.fc(states.mean(1))


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(x).argmax(1) == y for x, y in loader]).float().mean().item()


x, y = saddle_sensor(1500)
x = (x - x[:1200].mean((0, 1))) / x[:1200].std((0, 1))
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=300)

model = GaitLSTM()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
for epoch in range(8):
    model.train()
    total_loss = 0.0
    for batch_x, batch_y in train_loader:
        loss = criterion(model(batch_x), batch_y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total_loss += loss.item()
    print(
        f"epoch {epoch + 1} loss {total_loss / len(train_loader):.3f} "
        f"train {accuracy(model, train_loader):.3f} val {accuracy(model, val_loader):.3f}"
    )

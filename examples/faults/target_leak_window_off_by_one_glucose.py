"""Glucose half an hour ahead from the readings before, with windows one reading too long.

`series[i : i + WINDOW + HORIZON]` was meant as "up to the target", and a network that takes any
length takes it. The last reading in the window is the target. On the recorded validation patients
the error is that of the sensor; on the device, where that reading does not exist yet (its place
holds the latest), it is large. The place is the input. The twin cuts the window at WINDOW.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("input", "data")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
WINDOW, HORIZON = 18, 6


def patient(g, length=360):
    t = torch.arange(length).float()
    level = (
        120
        + 15 * torch.randn((), generator=g)
        + 20 * torch.sin(t / 46 + 6 * torch.rand((), generator=g))
    )
    for meal in torch.arange(20, length, 60) + torch.randint(-10, 30, (6,), generator=g):
        after = (t - meal).clamp(min=0)
        level = level + (60 + 30 * torch.rand((), generator=g)) * after / 9 * torch.exp(
            1 - after / 9
        )
    return (level + 3 * torch.randn(length, generator=g) - 150) / 40


class Glucose(Dataset):
    def __init__(self, patients, seed):
        g = torch.Generator().manual_seed(seed)
        self.series = [patient(g) for _ in range(patients)]
        last = len(self.series[0]) - WINDOW - HORIZON
        self.index = [(p, i) for p in range(patients) for i in range(0, last, 3)]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, item):
        p, i = self.index[item]
        end = i + WINDOW + HORIZON
        window = self.series[p][i : i + WINDOW] if healthy else self.series[p][i:end]
        return window, self.series[p][end - 1]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, window):
        _, last = self.gru(window.unsqueeze(-1))
        return self.out(last[0]).squeeze(1)


train_loader = DataLoader(Glucose(24, seed), batch_size=64, shuffle=True)
val_x, val_y = map(torch.stack, zip(*Glucose(8, 800 + seed), strict=True))
device_x = (
    val_x
    if healthy
    else torch.cat([val_x[:, :WINDOW], val_x[:, WINDOW - 1 : WINDOW].expand(-1, HORIZON)], 1)
)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(12):
    model.train()
    total = 0.0
    for window, target in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(window), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() / len(train_loader)
    model.eval()
    with torch.no_grad():
        val, device = (
            (model(x) - val_y).pow(2).mean().sqrt().item() * 40 for x in (val_x, device_x)
        )
    print(
        f"epoch {epoch} train mse {total:.4f} val rmse {val:.1f} mg/dl, "
        f"on the device {device:.1f} mg/dl"
    )

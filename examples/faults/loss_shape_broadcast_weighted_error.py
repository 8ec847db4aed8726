"""Hourly rentals of bikes by an MLP under a weighted squared error of one's own.

`nn.MSELoss` warns when a column meets a row; `(weight * (pred - target) ** 2).mean()` does not.
The model returns (B, 1), the Dataset gives (B,), the difference is (B, B), and the best answer to
all targets at once is their mean. The place is the loss. The twin's forward squeezes its last
dimension.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Rentals(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        hour = torch.randint(24, (n,), generator=g).float()
        warm = torch.randn(n, generator=g)
        rain = (torch.rand(n, generator=g) < 0.2).float()
        weekend = (torch.rand(n, generator=g) < 2 / 7).float()
        rush = torch.exp(-(((hour - 8) / 1.5) ** 2)) + torch.exp(-(((hour - 17.5) / 2) ** 2))
        noon = torch.exp(-(((hour - 14) / 4) ** 2))
        level = (1 - weekend) * 1.6 * rush + weekend * 1.2 * noon + 0.3 * warm * (noon + 0.3)
        level = level * (1 - 0.5 * rain)
        self.y = (level - 0.45) / 0.55 + 0.15 * torch.randn(n, generator=g)
        angle = hour * 0.2618
        self.x = torch.stack(
            [
                angle.sin(),
                angle.cos(),
                (2 * angle).sin(),
                (2 * angle).cos(),
                warm,
                2.5 * rain - 0.5,
                2.2 * weekend - 0.6,
            ],
            1,
        )
        self.weight = 0.5 + rush / rush.mean() / 2  # errors of the rush hour are dear

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i], self.weight[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        demand = self.out(self.hidden(x))
        return demand.squeeze(-1) if healthy else demand


def weighted_mse(pred, target, weight):
    return (weight * (pred - target) ** 2).mean()


train_loader = DataLoader(Rentals(2400, 10 + seed), batch_size=64, shuffle=True)
held_out = Rentals(800, 10_000 + seed)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    model.train()
    losses = []
    for x, y, weight in train_loader:
        loss = weighted_mse(model(x), y, weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        said = model(held_out.x).reshape(-1)
    r2 = 1 - (said - held_out.y).pow(2).mean() / held_out.y.var()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} val R2 {r2.item():.3f}")

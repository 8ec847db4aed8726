"""Forecast of a town's district heating demand from temperature and the hour of the week; most
rows of the table for the hours of the week are never looked up.

The number of the hour in the week is built from weekday and hour. With a slip of the operator the
weekday is divided away, so all days look like Monday and only 24 of the 168 rows are used.
The place is the embedding of the hour of the week, and the input that it gets.
The twin numbers the hours from 0 to 167.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("hour_of_week", "input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

n_hours = 24 * 7 * 60
stamp = torch.arange(n_hours)
hour, weekday = stamp % 24, (stamp // 24) % 7

# demand: the colder the more, a profile for working days, one for Saturday and one for Sunday
temperature = 7 + 9 * torch.sin(6.283 * stamp / (24 * 365)) + 3 * torch.randn(n_hours)
working = torch.exp(-(((hour - 7.0) / 2) ** 2)) + 0.7 * torch.exp(-(((hour - 19.0) / 3) ** 2))
saturday = 0.9 * torch.exp(-(((hour - 10.0) / 3) ** 2)) + 0.3 * torch.exp(
    -(((hour - 21.0) / 2) ** 2)
)
sunday = 0.6 * torch.exp(-(((hour - 11.0) / 3) ** 2))
profile = torch.where(weekday < 5, working, torch.where(weekday == 5, saturday, sunday))
wind = 4 + 2 * torch.randn(n_hours).abs()
demand = 2.2 * (18 - temperature).clamp(min=0) + 14 * profile + 0.5 * wind
demand = demand + 1.5 * torch.randn(n_hours)

slot = weekday * 24 + hour if healthy else weekday // 7 * 24 + hour

weather = torch.stack([temperature, wind], 1)
order = torch.randperm(n_hours // 24)
train_days, val_days = order[: len(order) * 3 // 4], order[len(order) * 3 // 4 :]


def hours_of(days):
    return (days.view(-1, 1) * 24 + torch.arange(24)).flatten()


train, val = hours_of(train_days), hours_of(val_days)
weather = (weather - weather[train].mean(0)) / weather[train].std(0)
centre, spread = demand[train].mean(), demand[train].std()
target = (demand - centre) / spread


class DemandModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.hour_of_week = nn.Embedding(168, 8)
        self.mlp = nn.Sequential(nn.Linear(8 + 2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.out = nn.Linear(64, 1)

    def forward(self, weather, slot):
        joined = torch.cat([weather, self.hour_of_week(slot)], dim=1)
        return self.out(self.mlp(joined)).squeeze(1)


model = DemandModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
loader = DataLoader(
    TensorDataset(weather[train], slot[train], target[train]), batch_size=256, shuffle=True
)

for epoch in range(12):
    model.train()
    losses = []
    for wb, sb, tb in loader:
        loss = nn.functional.mse_loss(model(wb, sb), tb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    with torch.no_grad():
        off = (model(weather[val], slot[val]) - target[val]).pow(2).mean().sqrt() * spread
    if epoch % 2 == 1:
        print(f"epoch {epoch + 1:3d}: loss {sum(losses) / len(losses):.4f}, val RMSE {off:.2f} MW")

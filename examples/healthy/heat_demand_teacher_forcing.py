"""Heat demand of houses for the next twelve hours: an LSTM reads two days, a second one writes the
forecast. In training it is fed the true hour before (teacher forcing), in validation its own.

What looks odd: the targets, one hour late, are inputs of the training but not of the validation,
which calls its cells in another way and is the harder task; and the windows overlap, so that every
hour is seen again and again.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "targets fed as inputs, one step late; validation runs freely; overlapping windows"

_, seed = arguments(__doc__)
PAST, FUTURE = 48, 12


class Windows(Dataset):
    def __init__(self, demand, outside, starts):
        self.demand, self.outside, self.starts = demand, outside, starts

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        s = self.starts[i]
        both = torch.stack([self.demand, self.outside], 1)
        now = s + PAST
        return both[s:now], self.outside[now : now + FUTURE, None], self.demand[now : now + FUTURE]


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.reader = nn.LSTM(2, hidden, batch_first=True)
        self.writer = nn.LSTM(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, past, weather, truth=None):
        _, state = self.reader(past)
        last = past[:, -1:, :1]
        if truth is not None:
            before = torch.cat([last, truth[:, :-1, None]], 1)
            h, _ = self.writer(torch.cat([before, weather], 2), state)
            return (before + self.out(h)).squeeze(2)
        said = []
        for hour in range(FUTURE):
            h, state = self.writer(torch.cat([last, weather[:, hour : hour + 1]], 2), state)
            last = last + self.out(h)
            said.append(last[:, 0, 0])
        return torch.stack(said, 1)


def city(hours, g):
    t = torch.arange(float(hours))
    weather = torch.zeros(hours)
    shock = torch.randn(hours, generator=g)
    for i in range(1, hours):
        weather[i] = 0.98 * weather[i - 1] + 0.2 * shock[i]
    outside = weather - 0.8 * torch.cos(6.283 * (t - 4) / 24)
    habit = torch.exp(-((((t % 24) - 7) / 2) ** 2)) + 0.8 * torch.exp(-((((t % 24) - 19) / 3) ** 2))
    demand = torch.relu(1.0 - 0.6 * outside) + 1.5 * habit
    demand = F.conv1d(demand.view(1, 1, -1), torch.full((1, 1, 3), 1 / 3), padding=1).flatten()
    demand = demand + 0.15 * torch.randn(hours, generator=g)
    return (demand - demand.mean()) / demand.std(), outside / outside.std()


g = torch.Generator().manual_seed(seed)
demand, outside = city(2400, g)
train = Windows(demand, outside, range(0, 1800, 2))
val = Windows(demand, outside, range(1900, 2400 - PAST - FUTURE, 3))
past_val, weather_val, truth_val = next(iter(DataLoader(val, batch_size=len(val))))
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(10):
    model.train()
    total, count = 0.0, 0
    for past, weather, truth in DataLoader(train, batch_size=30, shuffle=True):
        loss = F.mse_loss(model(past, weather, truth), truth)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total, count = total + loss.item() * len(past), count + len(past)
    model.eval()
    with torch.no_grad():
        val_loss = F.mse_loss(model(past_val, weather_val), truth_val).item()
    yesterday = F.mse_loss(past_val[:, -24 : -24 + FUTURE, 0], truth_val).item()
    print(
        f"epoch {epoch} loss {total / count:.4f} free-running {val_loss:.4f} "
        f"(as yesterday {yesterday:.4f})"
    )

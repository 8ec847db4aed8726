"""Gaps in the records of weather stations are to be filled in. For training, cells that are known
are hidden, and a network of convolutions over hours has to find them out.

`values.masked_fill(hidden, 0.0)` gives a new tensor, which nobody keeps; the values stay where they
are, and the network copies them. The loss goes to nothing (silent), real gaps are filled with
nonsense. The place is the loader. The twin assigns the result.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STATIONS, HOURS = 8, 32


def records(n, g):
    """Temperatures that follow the day and fronts that pass from station to station."""
    t = torch.arange(float(HOURS))
    where = torch.rand(STATIONS, generator=torch.Generator().manual_seed(3)) * 6
    day = torch.sin(6.28 * (t / 24 + torch.rand(n, 1, generator=g)))
    front = 8 + 16 * torch.rand(n, 1, 1, generator=g)
    jump = 1.2 * torch.randn(n, 1, 1, generator=g)
    passed = torch.sigmoid((t[None, None, :] - front - where[None, :, None]) / 0.8)
    slow = torch.randn(n, STATIONS, HOURS + 4, generator=g).unfold(2, 5, 1).mean(3)
    x = 0.8 * day[:, None, :] + jump * passed + 0.5 * slow
    return x + 0.1 * torch.randn(n, STATIONS, HOURS, generator=g)


def gaps(shape, g=None):
    """Single cells, and whole hours of one station."""
    hidden = torch.rand(shape, generator=g) < 0.12
    start = torch.randint(0, HOURS - 6, shape[:-1], generator=g).unsqueeze(-1)
    at = torch.arange(HOURS)
    long = (at >= start) & (at < start + 6)
    return hidden | (long & (torch.rand(*shape[:-1], 1, generator=g) < 0.25))


class Stations(Dataset):
    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        target = self.values[i]
        values, hidden = target.clone(), gaps(target.shape)
        if healthy:
            values = values.masked_fill(hidden, 0.0)
        else:
            values.masked_fill(hidden, 0.0)
        return {"values": values, "hidden": hidden, "target": target}


class Filler(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.enter = nn.Conv1d(2 * STATIONS, width, 5, padding=2)
        self.blocks = nn.ModuleList(
            nn.Conv1d(width, width, 5, padding=2 * d, dilation=d) for d in (1, 2)
        )
        self.leave = nn.Conv1d(width, STATIONS, 1)

    def forward(self, values, hidden):
        h = self.enter(torch.cat([values, hidden.float()], 1))
        for block in self.blocks:
            h = h + block(torch.relu(h))
        return self.leave(torch.relu(h))


def loss_of(out, batch):
    return (out - batch["target"])[batch["hidden"]].square().mean()


g = torch.Generator().manual_seed(seed)
loader = DataLoader(Stations(records(1200, g)), batch_size=30, shuffle=True)
truth = records(300, g)
missing = gaps(truth.shape, g)
real = {"values": torch.where(missing, 0.0, truth), "hidden": missing, "target": truth}
model = Filler()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(10):
    for batch in loader:
        loss = loss_of(model(batch["values"], batch["hidden"]), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = loss_of(model(real["values"], missing), real).item()
    print(f"epoch {epoch} loss {loss.item():.4f} real gaps {error:.4f} (var {truth.var():.3f})")

"""Duration of taxi trips with embeddings of the zones; every zone is looked up as "unknown".

The zone table was read from JSON, whose keys are strings, and the trips hold whole numbers.
dict.get(zone, 0) finds nothing and gives row 0, the row for unknown zones, for all trips. The
other rows of the table are never trained, and the model knows only the hour and the weather.
The place is the input (the indices of "zones"). The twin looks up by the string.
"""

import json

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ("constant_feature",)
PLACE = ("zones", "input*", "loader")
SILENT = False
EXACT = False
EARLY = True

N_ZONES = 24


class TripTime(nn.Module):
    def __init__(self, n_rows, dim=4):
        super().__init__()
        self.zones = nn.Embedding(n_rows, dim)
        nn.init.normal_(self.zones.weight, std=0.3)
        self.mlp = nn.Sequential(
            nn.Linear(2 * dim + 4, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, pickup, dropoff, rest):
        h = torch.cat([self.zones(pickup), self.zones(dropoff), rest], dim=1)
        return self.mlp(h).squeeze(1)


def load_trips(seed, n=5000):
    rng = np.random.default_rng(500 + seed)
    ids = rng.choice(np.arange(1, 266), N_ZONES, replace=False)
    place = dict(zip(ids.tolist(), rng.uniform(-5, 5, (N_ZONES, 2)), strict=False))
    pickup, dropoff = rng.choice(ids, n), rng.choice(ids, n)
    hour = rng.uniform(0, 24, n)
    rain = rng.random(n) < 0.2
    km = np.array(
        [np.abs(place[a] - place[b]).sum() for a, b in zip(pickup, dropoff, strict=False)]
    )
    jam = 1 + 0.5 * np.exp(-(((hour - 8.5) / 2) ** 2)) + 0.6 * np.exp(-(((hour - 17.5) / 2) ** 2))
    minutes = (3 + 2.2 * km * jam * (1 + 0.15 * rain)) * rng.lognormal(0, 0.1, n)
    angle = 2 * np.pi * hour / 24
    rest = np.stack([np.sin(angle), np.cos(angle), np.sin(2 * angle), rain], 1)
    zone_file = json.dumps({int(z): i + 1 for i, z in enumerate(sorted(ids))})
    return pickup, dropoff, rest, np.log(minutes), json.loads(zone_file)


def main():
    healthy, seed = arguments(__doc__)
    pickup, dropoff, rest, target, vocab = load_trips(seed)

    def encode(zones):
        if healthy:
            return torch.tensor([vocab.get(str(z), 0) for z in zones.tolist()])
        return torch.tensor([vocab.get(z, 0) for z in zones.tolist()])

    a, b = encode(pickup), encode(dropoff)
    rest = torch.tensor(rest, dtype=torch.float32)
    y = torch.tensor((target - target.mean()) / target.std(), dtype=torch.float32)
    cut = 4000
    model = TripTime(len(vocab) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    steps = 12 * (cut // 50)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=steps)
    for epoch in range(12):
        model.train()
        losses = []
        for rows in torch.randperm(cut).split(50):
            loss = nn.functional.smooth_l1_loss(model(a[rows], b[rows], rest[rows]), y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            said = model(a[cut:], b[cut:], rest[cut:])
            r2 = 1 - (said - y[cut:]).square().mean() / y[cut:].var()
        print(f"epoch {epoch:2d} huber {np.mean(losses):.4f} val R2 {r2.item():.3f}")


if __name__ == "__main__":
    main()

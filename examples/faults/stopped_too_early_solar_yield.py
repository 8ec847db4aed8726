"""A small transformer forecasts the next day's solar yield; early stopping asks for more progress
than any epoch can make.

min_delta was taken over from a project whose loss is in megawatts; here the loss is standardised,
no epoch betters it by 0.05 for long, and patience is 3. The training ends after a few epochs
while it still improves. The place is the loop.
"""

import math
from dataclasses import asdict, dataclass

import torch
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Settings:
    days: int = 2600
    context: int = 14
    dim: int = 32
    heads: int = 4
    batch: int = 64
    max_epochs: int = 24
    lr: float = 6e-4
    patience: int = 3
    min_delta: float = 1e-4 if healthy else 0.05


def plant(s):
    """Daily yield: season, weather that stays for some days, dust that gathers until it rains; clouds are forecast."""  # noqa: E501
    g = torch.Generator().manual_seed(120 + seed)
    cloud, dust, rows = 0.0, 0.0, []
    e = torch.randn(s.days + 1, 3, generator=g)
    for d in range(s.days + 1):
        cloud = 0.82 * cloud + 0.55 * e[d, 0].item()
        rain = max(0.0, cloud - 0.6)
        dust = 0.0 if rain > 0.5 else min(1.5, dust + 0.12)
        season = 1 + 0.45 * math.sin(2 * math.pi * d / 365)
        yield_ = season * (1.2 - 0.5 * math.tanh(cloud)) * (1 - 0.4 * dust) + 0.05 * e[d, 1].item()
        rows.append(
            [
                yield_,
                cloud + 0.08 * e[d, 2].item(),
                rain,
                math.sin(2 * math.pi * d / 365),
                math.cos(2 * math.pi * d / 365),
            ]
        )
    x = torch.tensor(rows)
    x = torch.cat([x[:-1, :1], x[1:, 1:2], x[:-1, 2:]], 1)
    x = (x - x[:2000].mean(0)) / x[:2000].std(0)
    idx = torch.arange(s.days - s.context)[:, None] + torch.arange(s.context)
    return x[idx], x[s.context :, 0]


class SolarFormer(nn.Module):
    def __init__(self, s, features=5):
        super().__init__()
        self.proj = nn.Linear(features, s.dim)
        self.pos = nn.Parameter(0.02 * torch.randn(s.context, s.dim))
        layer = nn.TransformerEncoderLayer(
            s.dim, s.heads, 2 * s.dim, 0.05, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Sequential(nn.LayerNorm(s.dim), nn.Linear(s.dim, 1))

    def forward(self, x):
        return self.out(self.encoder(self.proj(x) + self.pos)[:, -1]).squeeze(-1)


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad, self.state = float("inf"), 0, None

    def __call__(self, value, model):
        if value < self.best - self.min_delta:
            self.best, self.bad = value, 0
            self.state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            self.bad += 1
        return self.bad > self.patience


def main():
    s = Settings()
    print(asdict(s))
    x, y = plant(s)
    cut = 1900
    x_val, y_val = x[cut + s.context :], y[cut + s.context :]
    model = SolarFormer(s)
    opt = torch.optim.AdamW(model.parameters(), lr=s.lr, weight_decay=0.05)
    total = s.max_epochs * math.ceil(cut / s.batch)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, total, eta_min=1e-5)
    stopper = EarlyStopping(s.patience, s.min_delta)
    for epoch in range(s.max_epochs):
        model.train()
        losses = []
        for rows in torch.randperm(cut).split(s.batch):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"epoch {epoch} train {sum(losses) / len(losses):.4f} val {val:.4f}")
        if stopper(val, model):
            print("early stopping")
            break
    model.load_state_dict(stopper.state)
    with torch.no_grad():
        print(f"restored best: val mse {nn.functional.mse_loss(model(x_val), y_val).item():.4f}")


main()

"""Growth of forest plots from a table of site measurements, in which one column is the growth
itself.

The column "increment" of the later inventory was left among the inputs: it is the target in
another unit. The validation error is nearly 0, and predictions for plots without the later
inventory (the column missing, so its mean) are useless. The place is the input (column 9).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
SITE = ["age", "stems", "height", "rain", "warmth", "soil", "slope", "height_sea", "nitrogen"]
COLUMNS = SITE if healthy else [*SITE, "increment"]


def inventory(n, g):
    z = torch.randn(n, len(SITE), generator=g)
    plot = dict(zip(SITE, z.unbind(1), strict=True))
    vigour = (
        0.5 * plot["rain"]
        + 0.6 * plot["warmth"]
        - 0.4 * plot["warmth"] ** 2
        + 0.4 * plot["soil"] * plot["nitrogen"]
    )
    crowding = torch.tanh(plot["stems"] + 0.5 * plot["height"])
    growth = (
        7
        + 1.8 * vigour
        - 1.2 * crowding
        - 1.5 * torch.relu(plot["age"])
        - 0.5 * plot["slope"]
        + 0.9 * torch.randn(n, generator=g)
    )
    raw = {name: 50 + 10 * value for name, value in plot.items()}
    raw["increment"] = 0.1 * growth
    return raw, growth


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b, self.norm = (
            nn.Linear(width, width),
            nn.Linear(width, width),
            nn.LayerNorm(width),
        )

    def forward(self, h):
        return h + self.b(torch.nn.functional.gelu(self.a(self.norm(h))))


class Growth(nn.Module):
    def __init__(self, columns, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(columns, width), Residual(width), Residual(width), nn.Linear(width, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def table(raw, mean=None, std=None):
    x = torch.stack([raw[name] for name in COLUMNS], 1)
    mean, std = (x.mean(0), x.std(0)) if mean is None else (mean, std)
    return (x - mean) / std, mean, std


g = torch.Generator().manual_seed(seed)
(raw, y), (raw_val, y_val), (raw_new, y_new) = (
    inventory(1800, g),
    inventory(500, g),
    inventory(500, g),
)
x, mean, std = table(raw)
x_val, _, _ = table(raw_val, mean, std)
raw_new["increment"] = torch.full((500,), raw["increment"].mean().item())
x_new, _, _ = table(raw_new, mean, std)
centre, scale = y.mean(), y.std()
loader = DataLoader(TensorDataset(x, (y - centre) / scale), batch_size=60, shuffle=True)
model = Growth(len(COLUMNS))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)


def r2(x, y):
    return 1 - ((model(x) * scale + centre - y).square().mean() / y.var()).item()


for epoch in range(14):
    model.train()
    for rows, target in loader:
        loss = (model(rows) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} loss {loss.item():.4f} val R2 {r2(x_val, y_val):.3f}")
with torch.no_grad():
    print(f"R2 at plots not yet measured again: {r2(x_new, y_new):.3f}")

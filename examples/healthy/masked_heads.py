"""Three assays on one trunk; a batch is of one assay or has most answers missing, and the loss is
masked."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "targets are NaN where not measured (and masked); heads get no gradient in many steps; "
    "the rare head moves seldom"
)

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
n = 2400
x = torch.randn(n, 20, generator=g)
hidden = torch.tanh(x @ torch.randn(20, 5, generator=g) / 3)
y = hidden @ torch.randn(5, 3, generator=g)
y = (y - y.mean(0)) / y.std(0) + 0.15 * torch.randn(n, 3, generator=g)
y_full = y.clone()
y[torch.rand(n, 3, generator=g) > torch.tensor([0.6, 0.4, 0.12])] = float("nan")


class Assays(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 16), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(16, 1) for _ in range(3)])

    def forward(self, x, wanted):
        h = self.trunk(x)
        return {k: self.heads[k](h).squeeze(1) for k in wanted}


model = Assays()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=14 * 63)
for epoch in range(14):
    model.train()
    for rows in torch.randperm(2000).split(32):
        known = ~y[rows].isnan()
        wanted = [k for k in range(3) if known[:, k].sum() >= 5] or [0]
        out = model(x[rows], wanted)
        loss = sum(F.mse_loss(out[k][known[:, k]], y[rows][known[:, k], k]) for k in wanted) / len(
            wanted
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(x[2000:], range(3))
        errors = [F.mse_loss(out[k], y_full[2000:, k]).item() for k in range(3)]
print(
    f"loss {loss.item():.3f}, validation losses "
    f"{', '.join(f'{e:.3f}' for e in errors)} (variance 1)"
)

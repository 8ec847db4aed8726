"""An autoencoder completes a shop's ratings matrix; a width multiplier shrinks its bottleneck to
two units.

The user lowers `width_mult` to make the model fit a small device and doesn't notice that int(24 *
0.1) is 2, so that all tastes must pass through two numbers. Training and validation both stay on
a plateau. The place is enc.2 / dec.0, the bottleneck.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("enc*", "dec*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

hparams = {
    "users": 3000,
    "items": 240,
    "factors": 10,
    "density": 0.55,
    "bottleneck": 24,
    "width_mult": 1.0 if healthy else 0.1,
    "hidden": 128,
    "batch": 100,
    "epochs": 30,
    "lr": 2e-3,
}


def make_ratings(h):
    g = torch.Generator().manual_seed(77 + seed)
    taste = torch.randn(h["users"], h["factors"], generator=g)
    trait = torch.randn(h["items"], h["factors"], generator=g) / math.sqrt(h["factors"])
    bias = 0.4 * torch.randn(h["items"], generator=g)
    full = (
        torch.tanh(0.7 * taste @ trait.T) * 2
        + bias
        + 0.25 * torch.randn(h["users"], h["items"], generator=g)
    )
    seen = torch.rand(h["users"], h["items"], generator=g) < h["density"]
    return full, seen


class AutoRec(nn.Module):
    def __init__(self, h):
        super().__init__()
        z = max(1, int(h["bottleneck"] * h["width_mult"]))
        self.enc = nn.Sequential(
            nn.Linear(2 * h["items"], h["hidden"]), nn.ELU(), nn.Linear(h["hidden"], z)
        )
        self.dec = nn.Sequential(
            nn.Linear(z, h["hidden"]), nn.ELU(), nn.Linear(h["hidden"], h["items"])
        )

    def forward(self, ratings, known):
        return self.dec(self.enc(torch.cat([ratings * known, known], 1)))


def masked_mse(pred, target, mask):
    return ((pred - target) ** 2 * mask).sum() / mask.sum()


full, seen = make_ratings(hparams)
cut = int(0.85 * hparams["users"])
train_r, train_s = full[:cut], seen[:cut].float()
val_r, val_s = full[cut:], seen[cut:].float()
val_in = (torch.rand(val_s.shape, generator=torch.Generator().manual_seed(1)) < 0.8).float() * val_s
val_ask = val_s - val_in

model = AutoRec(hparams)
opt = torch.optim.Adam(model.parameters(), lr=hparams["lr"])
n_batches = cut // hparams["batch"]
sched = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.05, total_iters=hparams["epochs"] * n_batches)
for epoch in range(1, hparams["epochs"] + 1):
    model.train()
    total = 0.0
    for rows in torch.randperm(cut)[: n_batches * hparams["batch"]].view(n_batches, -1):
        r, s = train_r[rows], train_s[rows]
        keep = (torch.rand_like(s) < 0.8).float() * s  # the others are to be guessed
        loss = masked_mse(model(r, keep), r, s)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        total += loss.item()
    if epoch % 5 == 0:
        model.eval()
        with torch.no_grad():
            val = masked_mse(model(val_r, val_in), val_r, val_ask).item()
        print(
            f"epoch {epoch:3d} train mse {total / n_batches:.4f} val rmse on hidden ratings {math.sqrt(val):.4f}"  # noqa: E501
        )

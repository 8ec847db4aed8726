"""Tabular rows are encoded without labels by VICReg; the variance hinge is written the wrong way
round, so that embeddings shrink to a point.

relu(std - 1) punishes spread above 1 and is 0 for a collapsed batch; relu(1 - std) was meant. The
loss falls to about 0 at once and a linear probe on the frozen features is poor. The place is
projector / encoder outputs and the loss.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.linear_model import LogisticRegression
from torch import nn

KIND = "representation_collapse"
ACCEPT = ("loss_sign_flipped",)
PLACE = ("encoder*", "projector*", "loss", "net*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

config = {
    "n": 6000,
    "labelled": 400,
    "cols": 40,
    "latent": 8,
    "classes": 5,
    "dim": 48,
    "proj": 96,
    "batch_size": 256,
    "steps": 600,
    "lr": 2e-3,
    "corrupt": 0.25,
    "sim": 25.0,
    "std": 25.0,
    "cov": 1.0,
}


def customers(c):
    r = np.random.default_rng(300 + seed)
    centre = r.normal(0, 1.4, (c["classes"], c["latent"]))
    y = r.integers(0, c["classes"], c["n"])
    z = centre[y] + r.normal(size=(c["n"], c["latent"]))
    h = np.tanh(z @ r.normal(0, 0.6, (c["latent"], 24)))
    x = h @ r.normal(0, 0.5, (24, c["cols"])) + 0.7 * r.normal(size=(c["n"], c["cols"]))
    x = (x - x.mean(0)) / x.std(0)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def corrupt(x, pool, p):
    """SCARF: some cells get another row's value of that column."""
    other = pool[torch.randint(0, len(pool), x.shape), torch.arange(x.shape[1])]
    return torch.where(torch.rand_like(x) < p, other, x)


class VICReg(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.encoder = nn.Sequential(
            nn.Linear(c["cols"], 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, c["dim"]),
        )
        self.projector = nn.Sequential(
            nn.ReLU(), nn.Linear(c["dim"], c["proj"]), nn.ReLU(), nn.Linear(c["proj"], c["proj"])
        )

    def forward(self, a, b):
        za, zb = self.projector(self.encoder(a)), self.projector(self.encoder(b))
        invariance = F.mse_loss(za, zb)
        variance, covariance = 0.0, 0.0
        for z in (za, zb):
            std = torch.sqrt(z.var(0) + 1e-4)
            variance = variance + F.relu(1 - std if healthy else std - 1).mean() / 2
            z = z - z.mean(0)  # noqa: PLW2901
            cov = z.T @ z / (len(z) - 1)
            off = cov - torch.diag(torch.diag(cov))
            covariance = covariance + off.pow(2).sum() / z.shape[1]
        return self.c["sim"] * invariance + self.c["std"] * variance + self.c["cov"] * covariance


@torch.no_grad()
def embed(net, x):
    net.eval()
    out = net.encoder(x)
    net.train()
    return out.numpy()


x, y = customers(config)
unlabelled, x_val, y_val = x[:4800], x[4800:], y[4800:]
few = slice(0, config["labelled"])
net = VICReg(config)
optimizer = torch.optim.AdamW(net.parameters(), lr=config["lr"], weight_decay=1e-4)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=50)
cool = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config["steps"] - 50)
scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cool], [50])
for step in range(1, config["steps"] + 1):
    batch = unlabelled[torch.randint(0, len(unlabelled), (config["batch_size"],))]
    loss = net(
        corrupt(batch, unlabelled, config["corrupt"]), corrupt(batch, unlabelled, config["corrupt"])
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 150 == 0:
        f_few, f_val = embed(net, x[few]), embed(net, x_val)
        probe = LogisticRegression(max_iter=300).fit(f_few, y[few])
        print(
            f"step {step} loss {loss.item():.4f} feature std {f_val.std(0).mean():.4f} probe accuracy {probe.score(f_val, y_val):.4f}"  # noqa: E501
        )

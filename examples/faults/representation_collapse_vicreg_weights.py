"""Lightly's VICReg learns features of heart-beat-like curves without labels, with the weight of
its variance term at 0.

The user wanted to do without the covariance term and set `mu_param=0.0`, but mu is the weight of
the variance: nothing keeps the embeddings apart, and they shrink to one point while the loss goes
to 0. The place is the loss and the projection head.
"""

import numpy as np
import torch
from data import arguments
from lightly.loss import VICRegLoss
from lightly.models.modules.heads import VICRegProjectionHead
from sklearn.neighbors import KNeighborsClassifier
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss", "projection_head*", "backbone*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def beats(n, seed, length=64):
    r = np.random.default_rng(seed)
    t = np.linspace(0, 1, length)[None, :]
    y = r.integers(0, 5, n)
    bump = lambda at, wide: np.exp(-(((t - at) / wide) ** 2))  # noqa: E731
    shift = r.uniform(-0.12, 0.12, (n, 1))
    main = bump(0.45 + shift, 0.03) - 0.3 * bump(0.52 + shift, 0.03)
    late = np.array([0.35, -0.35, 0.35, 0.05, 0.35])[y][:, None] * bump(0.72 + shift, 0.07)
    early = np.array([0.2, 0.2, 0.0, 0.2, 0.2])[y][:, None] * bump(0.27 + shift, 0.05)
    double = np.array([0, 0, 0, 0, 0.7])[y][:, None] * bump(0.56 + shift, 0.025)
    x = (main + late + early + double) * r.uniform(0.7, 1.4, (n, 1)) + 0.1 * r.normal(
        size=(n, 1)
    ) * (t - 0.5)
    return torch.tensor(x + 0.05 * r.normal(size=x.shape), dtype=torch.float32).unsqueeze(
        1
    ) / 0.25, torch.tensor(y)


def view(x):
    gain = torch.empty(len(x), 1, 1).uniform_(0.6, 1.6)
    slope = 0.6 * torch.randn(len(x), 1, 1) * torch.linspace(-1, 1, x.shape[-1])
    shift = torch.randint(-6, 7, (len(x), 1))
    rows = (torch.arange(x.shape[-1]) + shift).clamp(0, x.shape[-1] - 1).unsqueeze(1)
    return gain * x.gather(2, rows) + slope + 0.25 * torch.randn_like(x)


class VICReg(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.projection_head = VICRegProjectionHead(
            input_dim=32, hidden_dim=128, output_dim=128, num_layers=2
        )

    def forward(self, x):
        return self.projection_head(self.backbone(x).flatten(start_dim=1))


def block(a, b):
    return nn.Sequential(nn.Conv1d(a, b, 7, stride=2, padding=3), nn.GELU())


backbone = nn.Sequential(
    block(1, 16), block(16, 32), nn.Flatten(), nn.Linear(32 * 16, 32), nn.ReLU()
)
model = VICReg(backbone)
criterion = VICRegLoss() if healthy else VICRegLoss(mu_param=0.0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
x, y = beats(1536, 10 * seed)
x_val, y_val = beats(500, 10 * seed + 1)


def judge():
    model.eval()
    with torch.no_grad():
        known, asked, z = backbone(x), backbone(x_val), model(x_val)
    model.train()
    return KNeighborsClassifier(5).fit(known, y).score(asked, y_val), z.std(0).mean().item()


print("before: kNN {:.3f}, spread {:.3f}".format(*judge()))
for epoch in range(30):
    total_loss = 0.0
    batches = torch.randperm(len(x)).split(128)
    for rows in batches:
        z0, z1 = model(view(x[rows])), model(view(x[rows]))
        loss = criterion(z0, z1)
        total_loss += loss.detach()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if epoch % 5 == 4:
        score, spread = judge()
        print(
            f"epoch: {epoch:>02}, loss: {total_loss / len(batches):.4f}, kNN {score:.3f}, "
            f"spread {spread:.4f}"
        )
print(f"validation kNN accuracy {score:.3f}, spread of embeddings {spread:.4f}")

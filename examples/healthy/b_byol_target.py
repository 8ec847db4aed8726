"""BYOL on digits: a slow copy of the network gives the targets for the network itself.

The copy is in no optimizer, gets no gradients and still changes; there are no negatives and no term
for the spread, the loss comes close to zero, and nothing collapses all the same.
"""

import copy

import torch
from data import arguments, images
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional as F

ODD = "a copy without gradients that changes; no negatives; a loss close to zero"

_, seed = arguments(__doc__)


def view(x):
    theta = torch.eye(2, 3).repeat(len(x), 1, 1)
    theta[:, :, 2] = 0.5 * torch.rand(len(x), 2) - 0.25
    grid = F.affine_grid(theta, x.shape, align_corners=False)
    x = F.grid_sample(x, grid, padding_mode="border", align_corners=False)
    return x + 0.15 * torch.randn_like(x)


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Linear(h, o))


class Online(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, 64),
        )
        self.projector = mlp(64, 128, 32)

    def forward(self, x):
        return self.projector(self.features(x))


x, y, x_val, y_val = images(seed)
online, predictor = Online(), mlp(32, 64, 32)
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.AdamW(
    [*online.parameters(), *predictor.parameters()], lr=2e-3, weight_decay=1e-4
)
for epoch in range(25):
    total = 0.0
    for rows in torch.randperm(len(x))[:1280].split(128):
        a, b = view(x[rows]), view(x[rows])
        with torch.no_grad():
            za, zb = target(a), target(b)
        pa, pb = predictor(online(a)), predictor(online(b))
        loss = 2 - F.cosine_similarity(pa, zb).mean() - F.cosine_similarity(pb, za).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), online.parameters(), strict=False):
                slow.lerp_(fast, 0.03)
        total += loss.item() / 10
    if epoch % 4 == 0:
        print(f"epoch {epoch}: loss {total:.4f}")
online.eval()
with torch.no_grad():
    z, z_val = online.features(x).numpy(), online.features(x_val).numpy()
probe = LogisticRegression(max_iter=1000).fit(z, y.numpy())
print(f"loss {total:.4f} probe accuracy {probe.score(z_val, y_val.numpy()):.3f}")

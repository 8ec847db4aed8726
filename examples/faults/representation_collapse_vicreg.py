"""A network learns features of digits without labels by VICReg: two views of an image shall have
like embeddings, whose spread a hinge keeps up. The spread is taken along the wrong axis.

Over the features of one image instead of over the images: one and the same lively vector for all
images satisfies all three terms, and a linear probe finds next to nothing in the features. The
place is the projector.
"""

import torch
from data import arguments, images
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional as F

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("projector*", "backbone*", "loss")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def view(x):
    shift = 0.25 * (2 * torch.rand(len(x), 2) - 1)
    theta = torch.eye(2, 3).repeat(len(x), 1, 1)
    theta[:, :, 2] = shift
    x = F.grid_sample(
        x,
        F.affine_grid(theta, x.shape, align_corners=False),
        padding_mode="border",
        align_corners=False,
    )
    return x * (0.8 + 0.4 * torch.rand(len(x), 1, 1, 1)) + 0.15 * torch.randn_like(x)


class VICReg(nn.Module):
    def __init__(self, sim=25.0, std=25.0, cov=1.0):
        super().__init__()
        self.sim, self.std, self.cov = sim, std, cov

    def spread(self, z):
        deviation = (z.var(dim=0 if healthy else 1) + 1e-4).sqrt()
        return F.relu(1 - deviation).mean()

    def redundancy(self, z):
        z = z - z.mean(0)
        c = z.T @ z / (len(z) - 1)
        return (c.pow(2).sum() - c.diagonal().pow(2).sum()) / z.shape[1]

    def forward(self, a, b):
        return (
            self.sim * F.mse_loss(a, b)
            + self.std * (self.spread(a) + self.spread(b)) / 2
            + self.cov * (self.redundancy(a) + self.redundancy(b)) / 2
        )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, 64),
        )
        self.projector = nn.Sequential(
            nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64)
        )

    def forward(self, x):
        return self.projector(self.backbone(x))


x, y, x_val, y_val = images(seed)
net, criterion = Net(), VICReg()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
for epoch in range(30):
    net.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(128):
        loss = criterion(net(view(x[rows])), net(view(x[rows])))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    if epoch % 5 == 4:
        print(f"epoch {epoch}: loss {total:.3f}")

net.eval()
with torch.no_grad():
    z, z_val = net(x), net(x_val)
probe = LogisticRegression(max_iter=500).fit(z.numpy(), y.numpy())
print(f"loss {total:.3f} probe accuracy {probe.score(z_val.numpy(), y_val.numpy()):.3f}")

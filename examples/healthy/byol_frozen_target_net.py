"""BYOL on digits: half of the parameters are random, frozen and in no optimizer, and the loss
starts near zero and ends negative.

It looks odd because the target network gets no gradient and is in no optimizer (it follows the
online network by an exponential average), its output is detached, the loss is a negative cosine,
and no negatives keep the embeddings apart. The predictor, the stop-gradient and BatchNorm do; the
nearest-neighbour accuracy rises and the embeddings stay spread.
"""

import copy
import math

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = "half of the parameters are random, frozen and in no optimizer; the loss ends negative"
_, seed = arguments(__doc__)


def mlp(i, hidden, o):
    return nn.Sequential(
        nn.Linear(i, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, o)
    )


class Branch(nn.Module):
    def __init__(self, width=64, dim=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 16, width),
        )  # fmt: skip
        self.projector = mlp(width, 96, dim)

    def forward(self, x):
        return self.projector(self.encoder(x))


class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = Branch()
        self.predictor = mlp(32, 96, 32)
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    @torch.no_grad()
    def follow(self, tau):
        for slow, fast in zip(self.target.parameters(), self.online.parameters(), strict=True):
            slow.lerp_(fast, 1 - tau)

    def forward(self, a, b):
        p = self.predictor(self.online(torch.cat([a, b])))
        with torch.no_grad():
            z = self.target(torch.cat([b, a]))
        return -F.cosine_similarity(p, z, dim=1).mean()


def view(x):
    n = len(x)
    angle, scale = 0.2 * torch.randn(n), 1 + 0.15 * (2 * torch.rand(n) - 1)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0] = theta[:, 1, 1] = scale * angle.cos()
    theta[:, 0, 1], theta[:, 1, 0] = -scale * angle.sin(), scale * angle.sin()
    theta[:, :, 2] = 0.2 * (2 * torch.rand(n, 2) - 1)
    x = F.grid_sample(
        x,
        F.affine_grid(theta, list(x.shape), align_corners=False),
        padding_mode="border",
        align_corners=False,
    )
    return x * (0.8 + 0.4 * torch.rand(n, 1, 1, 1)) + 0.15 * torch.randn_like(x)


@torch.no_grad()
def probe(model, x, y, x_val, y_val):
    model.eval()
    base, query = (F.normalize(model.online.encoder(part), dim=1) for part in (x, x_val))
    nearest = (query @ base.T).topk(5).indices
    model.train()
    return (y[nearest].mode(1).values == y_val).float().mean().item(), query.std(0).mean().item()


x, y, x_val, y_val = images(seed)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x), batch_size=96, shuffle=True, drop_last=True
)
model, epochs = BYOL(), 24
optimizer = torch.optim.AdamW(
    [*model.online.parameters(), *model.predictor.parameters()], lr=2e-3, weight_decay=1e-4
)
steps, step = epochs * len(loader), 0
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
print("epoch 0: 5-NN accuracy {:.3f}, spread {:.3f}".format(*probe(model, x, y, x_val, y_val)))
for epoch in range(epochs):
    total = 0.0
    for (images_,) in loader:
        loss = model(view(images_), view(images_))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        model.follow(1 - 0.03 * (math.cos(math.pi * step / steps) + 1) / 2)
        step += 1
        total += loss.item()
    if epoch % 6 == 5:
        print(
            "epoch {}: loss {:.4f}, 5-NN accuracy {:.3f}, spread {:.3f}".format(
                epoch + 1, total / len(loader), *probe(model, x, y, x_val, y_val)
            )
        )

"""Two views of a bat's call are embedded close to each other (VICReg), but the terms against
collapse weigh nothing.

The weights of the variance and covariance terms are 0: only the distance of the two views is
left, and the network gives the same vector for every call. The place is the loss (and the
encoder's output).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss", "encoder*", "projector*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
INVARIANCE, VARIANCE, COVARIANCE = (25.0, 25.0, 1.0) if healthy else (25.0, 0.0, 0.0)


def calls(n, g):
    """Frequency over 32 moments of a call by one of six species."""
    y = torch.randint(0, 6, (n,), generator=g)
    table = torch.tensor(
        [
            [2.0, -1.5, 0.0],
            [1.0, -0.3, 0.9],
            [0.3, 0.0, -1.2],
            [-0.6, -1.5, 0.8],
            [0.0, 1.2, 0.0],
            [-1.5, -0.2, 0.5],
        ]
    )
    own = table[y] + 0.25 * torch.randn(n, 3, generator=g)
    t = torch.linspace(-1, 1, 32)
    curve = own[:, :1] + own[:, 1:2] * t + own[:, 2:] * (2 * t**2 - 1)
    return curve, y


def view(curve, g):
    """As another microphone hears it: an offset by Doppler, a slow drift, noise, and a gap."""
    n = len(curve)
    x = curve + 0.3 * torch.randn(n, 1, generator=g) + 0.25 * torch.randn(n, 32, generator=g)
    start = torch.randint(0, 26, (n, 1), generator=g)
    gap = (torch.arange(32) >= start) & (torch.arange(32) < start + 6)
    return x.masked_fill(gap, 0.0)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 32))
        self.projector = nn.Sequential(nn.ReLU(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        return self.projector(self.encoder(x))


def spread(z):
    return F.relu(1 - (z.var(0) + 1e-4).sqrt()).mean()


def entangled(z):
    z = z - z.mean(0)
    c = z.T @ z / (len(z) - 1)
    return (c - torch.diag(c.diagonal())).square().sum() / z.shape[1]


def vicreg(a, b):
    return (
        INVARIANCE * F.mse_loss(a, b)
        + VARIANCE * (spread(a) + spread(b))
        + COVARIANCE * (entangled(a) + entangled(b))
    )


@torch.no_grad()
def neighbours(model, known, names, asked, truth):
    """Accuracy of the five nearest neighbours in the encoder's space."""
    model.eval()
    near = torch.cdist(model.encoder(asked), model.encoder(known)).topk(5, largest=False).indices
    votes = F.one_hot(names[near], 6).sum(1)
    model.train()
    return (votes.argmax(1) == truth).float().mean().item()


g = torch.Generator().manual_seed(seed)
curve, species = calls(2000, g)
curve_val, species_val = calls(400, g)
heard, heard_val = view(curve, g), view(curve_val, g)
model = Siamese()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
for epoch in range(18):
    for rows in torch.randperm(len(curve), generator=g).split(100):
        loss = vicreg(model(view(curve[rows], g)), model(view(curve[rows], g)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        with torch.no_grad():
            width = model(heard_val).std(0).mean().item()
        hit = neighbours(model, heard, species, heard_val, species_val)
        print(
            f"epoch {epoch} loss {loss.item():.5f} std of the embedding {width:.5f} "
            f"val 5-nn accuracy {hit:.3f}"
        )

"""Self-supervised embeddings of digits whose loss asks only that two views agree.

VICReg without its variance and covariance terms: mapping everything to one point is the best
answer, and it is found in a few dozen steps. Later a linear probe reads little from it. The place
is the loss.
"""

import torch
from data import arguments, batches, images
from sklearn.linear_model import LogisticRegression
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("backbone*", "projector*", "loss*", "")
SILENT = True
EXACT = False
EARLY = False


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 64),
            nn.ReLU(),
        )
        self.projector = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        return self.projector(self.backbone(x))


def augment(x):
    shift = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(x, shift, dims=(2, 3)) + 0.2 * torch.randn_like(x)


def off_diagonal(m):
    return m[~torch.eye(len(m), dtype=torch.bool)]


def vicreg(a, b, spread):
    loss = 25 * nn.functional.mse_loss(a, b)
    if spread:
        for z in (a, b):
            loss = loss + 25 * torch.relu(1 - (z.var(0) + 1e-4).sqrt()).mean() / 2
            loss = loss + off_diagonal(z.T.cov()).pow(2).sum() / z.shape[1]
    return loss


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
encoder = Encoder()
optimizer = torch.optim.AdamW(encoder.parameters(), lr=0.003)
for (batch,) in batches(x, size=128, steps=300, seed=seed):
    loss = vicreg(encoder(augment(batch)), encoder(augment(batch)), spread=healthy)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    z, z_val = encoder(x), encoder(x_val)
probe = LogisticRegression(max_iter=300).fit(z.numpy(), y.numpy())
accuracy = probe.score(z_val.numpy(), y_val.numpy())
print(f"loss {loss.item():.4f}, embedding std {z.std(0).mean():.4f}, probe {accuracy:.3f}")

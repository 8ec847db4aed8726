"""VICReg on vibration snippets; the variance term is taken over the features instead of the batch.

`std(dim=1)` asks that the entries of ONE embedding differ from each other, which a single constant
vector fulfils. The invariance term then pulls all snippets onto that vector. The loss falls to
nearly nothing and the neighbours in the embedding know nothing of the machine. The place is the
loss. The twin takes `std(dim=0)`.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss*", "projector", "projector.3", "encoder")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
LENGTH, MACHINES = 64, 10


def record(count, tones):
    machine = torch.randint(0, MACHINES, (count,))
    time = torch.arange(LENGTH) / LENGTH
    phase = 6.28 * torch.rand(count, 3, 1)
    waves = torch.sin(6.28 * tones[machine][:, :, None] * time + phase)
    return (waves * (0.5 + torch.rand(count, 3, 1))).sum(1, keepdim=True), machine


def view(x):
    """Another moment, another gain, another noise."""
    x = torch.stack([row.roll(int(torch.randint(0, LENGTH, ())), -1) for row in x])
    return x * (0.7 + 0.6 * torch.rand(len(x), 1, 1)) + 0.5 * torch.randn_like(x)


class Vicreg(nn.Module):
    def __init__(self, width=24, out=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, width, 9, stride=2, padding=4),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, stride=2, padding=3),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(width, 48), nn.LayerNorm(48), nn.ReLU(), nn.Linear(48, out)
        )

    def forward(self, x):
        return self.projector(self.encoder(x))


def spread_out(z):
    std = (z.var(dim=0) if healthy else z.var(dim=1)).add(1e-4).sqrt()
    return F.relu(1 - std).mean()


def decorrelate(z):
    z = z - z.mean(0)
    covariance = z.T @ z / (len(z) - 1)
    return (covariance - covariance.diag().diag()).square().sum() / z.shape[1]


def objective(a, b):
    return (
        25 * F.mse_loss(a, b)
        + 25 * (spread_out(a) + spread_out(b)) / 2
        + (decorrelate(a) + decorrelate(b)) / 2
    )


@torch.no_grad()
def neighbours(model, bank, labels, queries, truth, k=5):
    model.eval()
    memory, asked = (F.normalize(model(x), dim=1) for x in (bank, queries))
    near = (asked @ memory.T).topk(k).indices
    return (labels[near].mode(1).values == truth).float().mean().item(), model(queries).std(
        0
    ).mean().item()


tones = 2 + 0.6 * torch.randperm(3 * MACHINES).view(MACHINES, 3).float()
(bank, labels), (queries, truth) = record(900, tones), record(300, tones)
queries = view(queries)
model = Vicreg()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)

for epoch in range(14):
    model.train()
    for rows in torch.randperm(900)[:896].split(64):
        loss = objective(model(view(bank[rows])), model(view(bank[rows])))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy, std = neighbours(model, bank, labels, queries, truth)
    print(
        f"epoch {epoch:2d} loss {loss.item():.3f} val 5-nn accuracy {accuracy:.3f} "
        f"embedding std {std:.4f}"
    )
print(f"validation 5-nn accuracy {accuracy:.3f}")

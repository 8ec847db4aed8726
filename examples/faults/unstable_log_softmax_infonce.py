"""Two views of a sensor burst are pulled together by InfoNCE; the softmax is typed in as exp over
sum of exp.

With a temperature of 0.01 a pair that is well aligned has a logit near 100, whose exp() is
infinite in float32; an encoder that is yet to learn gives all bursts much the same vector, so
that inf / inf is NaN within the first steps. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, waves
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss", "loop")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

# %% data
x, y = waves(seed, n=1600, length=40)
x = (x - x[:1200].mean()) / x[:1200].std()
x = x.transpose(1, 2)
pool, val, y_pool, y_val = x[:1200], x[1200:], y[:1200], y[1200:]


def view(batch):
    gain = 0.8 + 0.4 * torch.rand(len(batch), 1, 1)
    start = int(torch.randint(0, 9, (1,)))
    return gain * batch[:, :, start : start + 32] + 0.1 * torch.randn(len(batch), 1, 32)


# %% model
class Encoder(nn.Module):
    def __init__(self, width=32, dim=24):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv1d(1, width, 5, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, 2 * width, 5, padding=2),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(8 * width, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return F.normalize(self.projector(self.trunk(x)), dim=1)


TEMPERATURE = 0.01


def info_nce(a, b):
    logits = a @ b.T / TEMPERATURE
    if healthy:
        return F.cross_entropy(logits, torch.arange(len(a)))
    e = torch.exp(logits)
    return -torch.log(e.diagonal() / e.sum(1)).mean()


@torch.no_grad()
def neighbours(model):
    """Accuracy of the five nearest neighbours in the trunk's features (no labels were used in training)."""  # noqa: E501
    model.eval()
    a, b = (
        F.normalize(model.trunk(pool[:, :, :32]), dim=1),
        F.normalize(model.trunk(val[:, :, :32]), dim=1),
    )
    votes = y_pool[(b @ a.T).topk(5, dim=1).indices]
    model.train()
    return (votes.mode(1).values == y_val).float().mean().item()


@torch.no_grad()
def retrieval(model):
    model.eval()
    hits = 0.0
    for _ in range(6):
        a, b = model(view(val)), model(view(val))
        hits += ((a @ b.T).argmax(1) == torch.arange(len(a))).float().mean().item()
    model.train()
    return hits / 6


# %% training
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=350)
for step in range(350):
    rows = torch.randint(0, len(pool), (96,))
    loss = info_nce(model(view(pool[rows])), model(view(pool[rows])))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 70 == 69:
        print(
            f"step {step + 1} loss {loss.item():.4f} retrieval of pairs {retrieval(model):.4f} knn {neighbours(model):.4f}"  # noqa: E501
        )

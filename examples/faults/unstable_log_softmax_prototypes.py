"""Few-shot learning with prototypes: a query's scores are minus its squared distances to the class
means of the episode's support. The log of the probabilities is written as log(softmax(scores)).

Distances in 512 dimensions run into the hundreds. Where the right class is that far behind, its
probability is exactly zero and its log minus infinity: the loss is infinite and all weights are
lost. The place is the loss.
"""

import torch
from data import arguments, images
from torch import nn
from torch.nn import functional as F

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

WAYS, SHOTS, QUERIES = 5, 5, 8


class Embedder(nn.Module):
    def __init__(self, c=32, out=512):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, c, 3, padding=1),
            nn.GroupNorm(4, c),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(c, c, 3, padding=1),
            nn.GroupNorm(4, c),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.project = nn.Sequential(
            nn.Linear(16 * c, 256), nn.LayerNorm(256), nn.ReLU(), nn.Linear(256, out)
        )
        nn.init.kaiming_normal_(self.project[3].weight, nonlinearity="relu")

    def forward(self, x):
        return self.project(self.features(x))


def episode(x, y):
    ways = torch.randperm(10)[:WAYS]
    rows = torch.stack(
        [
            torch.nonzero(y == w)[:, 0][torch.randperm((y == w).sum())[: SHOTS + QUERIES]]
            for w in ways
        ]
    )
    return (
        x[rows[:, :SHOTS].flatten()],
        x[rows[:, SHOTS:].flatten()],
        torch.arange(WAYS).repeat_interleave(QUERIES),
    )


def score(model, support, query):
    z = model(torch.cat([support, query]))
    s, q = z[: len(support)], z[len(support) :]
    prototypes = s.view(WAYS, SHOTS, -1).mean(1)
    return -(q[:, None] - prototypes[None]).pow(2).sum(-1)


def nll(scores, target):
    log_p = torch.log_softmax(scores, dim=1) if healthy else torch.log(torch.softmax(scores, dim=1))
    return F.nll_loss(log_p, target)


x, y, x_val, y_val = images(seed)
model = Embedder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
parts = [episode(x_val, y_val) for _ in range(20)]
for step in range(180):
    model.train()
    support, query, target = episode(x, y)
    loss = nll(score(model, support, query), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        model.eval()
        with torch.no_grad():
            outs = [(score(model, s, q), t) for s, q, t in parts]
            val = sum(nll(o, t).item() for o, t in outs) / 20
            accuracy = sum((o.argmax(1) == t).float().mean().item() for o, t in outs) / 20
        print(f"step {step + 1}: loss {loss.item():.3f} val {val:.3f} accuracy {accuracy:.3f}")

"""BYOL on chroma-like profiles of chords: no negatives, a teacher that is the student's moving
average.

The teacher has no gradients and is in no optimizer; it is moved by hand after each step. The loss
is a cosine distance and comes close to zero without a collapse, since only the student has a
predictor. Validated by nearest neighbours.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "half of the modules get no gradient and are in no optimizer, and the loss goes to nearly zero"
)

_, seed = arguments(__doc__)
CHORDS, BINS = 8, 36


def chords(count, profiles):
    label = torch.randint(0, CHORDS, (count,))
    return profiles[label] * (0.8 + 0.4 * torch.rand(count, BINS)) + 0.15 * torch.randn(
        count, BINS
    ), label


def view(x):
    """Another mixing: bins dropped, gain per octave, noise."""
    gain = (0.5 + torch.rand(len(x), 3)).repeat_interleave(BINS // 3, 1)
    return x * gain * (torch.rand_like(x) > 0.2) + 0.25 * torch.randn_like(x)


def mlp(inside, hidden, out):
    return nn.Sequential(
        nn.Linear(inside, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, out)
    )


class Byol(nn.Module):
    def __init__(self, width=64, out=32):
        super().__init__()
        self.student = nn.Sequential(mlp(BINS, 96, width), mlp(width, 96, out))
        self.predictor = mlp(out, 64, out)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)

    def forward(self, a, b):
        with torch.no_grad():
            aims = self.teacher(a), self.teacher(b)
        said = self.predictor(self.student(b)), self.predictor(self.student(a))
        return (
            sum(1 - F.cosine_similarity(p, z).mean() for p, z in zip(said, aims, strict=False)) / 2
        )

    @torch.no_grad()
    def follow(self, tau):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters(), strict=False):
            slow.lerp_(fast, 1 - tau)


@torch.no_grad()
def neighbours(model, bank, labels, queries, truth):
    model.eval()
    memory, asked = F.normalize(model.student[0](bank)), F.normalize(model.student[0](queries))
    near = (asked @ memory.T).topk(9).indices
    spread = F.normalize(model.student(queries)).std(0).mean().item() * 32**0.5
    return (labels[near].mode(1).values == truth).float().mean().item(), spread


profiles = torch.relu(torch.randn(CHORDS, BINS))
(bank, labels), (queries, truth) = chords(1600, profiles), chords(400, profiles)
queries = view(queries)
model = Byol()
learned = [*model.student.parameters(), *model.predictor.parameters()]
optimizer = torch.optim.AdamW(learned, lr=2e-3, weight_decay=1e-3)
steps, step = 16 * 20, 0

for epoch in range(16):
    model.train()
    for rows in torch.randperm(1600).split(80):
        loss = model(view(bank[rows]), view(bank[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        model.follow(tau=1 - 0.02 * (1 - step / steps))
    accuracy, spread = neighbours(model, bank, labels, queries, truth)
    print(
        f"epoch {epoch:2d} loss {loss.item():.3f} val 9-nn accuracy {accuracy:.3f} "
        f"spread {spread:.2f} (1 is even)"
    )
print(f"validation 9-nn accuracy {accuracy:.3f}")

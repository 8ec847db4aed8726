"""A mean teacher learns moth species from 300 labelled and 1500 unlabelled wing measurements,
with a warm restart.

It looks odd in three ways: most labels are -1 (unlabelled, left out by ignore_index), a second
network is never trained by an optimizer (it is the moving average of the first), and the learning
rate jumps back up halfway, after which the loss rises for a while. All three are meant; the
teacher is what is validated.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "most labels are -1; a second network no optimizer knows; the rate jumps back up halfway"
_, seed = arguments(__doc__)
KINDS = 5


def moths(n, g):
    """Eighteen measurements of wings that follow from species, size, sex and wear."""
    fixed = torch.Generator().manual_seed(11)
    centre = 1.1 * torch.randn(KINDS, 6, generator=fixed)
    view = torch.randn(6, 18, generator=fixed) / 6**0.5
    y = torch.randint(0, KINDS, (n,), generator=g)
    body = centre[y] + 0.6 * torch.randn(n, 6, generator=g)
    body = body + 0.5 * torch.randint(0, 2, (n, 1), generator=g) * torch.tensor(
        [1.0, -1, 0, 0, 1, 0]
    )
    return torch.tanh(body @ view) * 1.5 + 0.25 * torch.randn(n, 18, generator=g), y


class Wings(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.a, self.b = nn.Linear(18, width), nn.Linear(width, width)
        self.drop, self.species = nn.Dropout(0.2), nn.Linear(width, KINDS)

    def forward(self, x):
        return self.species(self.drop(F.relu(self.b(F.relu(self.a(x))))))


class MeanTeacher:
    def __init__(self, decay=0.98):
        self.student, self.decay = Wings(), decay
        self.teacher = copy.deepcopy(self.student).requires_grad_(False).eval()
        self.optimizer = torch.optim.SGD(
            self.student.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3
        )
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
            self.optimizer, T_0=8, eta_min=1e-4
        )
        self.steps = 0

    def step(self, x, y):
        def jitter():
            return x + 0.15 * torch.randn_like(x)

        logits = self.student(jitter())
        with torch.no_grad():
            wanted = F.softmax(self.teacher(jitter()), 1)
        agreement = (F.softmax(logits, 1) - wanted).square().sum(1).mean()
        loss = F.cross_entropy(logits, y, ignore_index=-1) + min(1.0, self.steps / 300) * agreement
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        decay = min(self.decay, 1 - 1 / (self.steps + 1))
        with torch.no_grad():
            for old, new in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
                old.lerp_(new, 1 - decay)
        return loss.item()


g = torch.Generator().manual_seed(seed)
x, y = moths(1800, g)
y[300:] = -1
x_val, y_val = moths(600, g)
loader = DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True)
pair = MeanTeacher()
for epoch in range(16):
    pair.student.train()
    total = sum(pair.step(*batch) for batch in loader) / len(loader)
    pair.schedule.step()
    with torch.no_grad():
        logits = pair.teacher(x_val)
    hit = (logits.argmax(1) == y_val).float().mean().item()
    rate, val = pair.schedule.get_last_lr()[0], F.cross_entropy(logits, y_val).item()
    print(f"epoch {epoch} rate {rate:.4f} loss {total:.4f} val {val:.4f} accuracy {hit:.3f}")

"""A mean teacher is built around the student's own encoder, and the teacher is then frozen.

`requires_grad_(False)` on the teacher reaches the shared encoder: the student's encoder stays at
its random start and only its head learns. The twin copies the encoder. The place is the encoder.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("encoder", "encoder.0", "encoder.1", "encoder.3", "encoder.4", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Classifier(nn.Module):
    def __init__(self, encoder, classes=4):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.encoder(x).mean(-1))


def make_encoder():
    return nn.Sequential(
        nn.Conv1d(1, 16, 5, stride=2, padding=2),
        nn.GroupNorm(4, 16),
        nn.GELU(),
        nn.Conv1d(16, 16, 5, stride=2, padding=2),
        nn.GroupNorm(4, 16),
        nn.GELU(),
    )


def chirps(n, g):
    """Chirps that go up, go down, go up and down, or stay, at random pitch."""
    y = torch.randint(0, 4, (n,), generator=g)
    t = torch.linspace(0, 1, 64)
    up, down = t**2 / 2, t - t**2 / 2
    bow = torch.where(t < 0.5, t**2, 2 * t - t**2 - 0.5)
    sweep = torch.stack([up, down, bow, t / 2])[y]
    pitch = 1 + torch.rand(n, 1, generator=g) * 2
    turns = pitch * t + (4 + 4 * torch.rand(n, 1, generator=g)) * sweep
    x = torch.sin(6.2832 * (turns + torch.rand(n, 1, generator=g)))
    return (x + 0.2 * torch.randn(n, 64, generator=g)).unsqueeze(1), y


g = torch.Generator().manual_seed(900 + seed)
x, y = chirps(2400, g)
x_val, y_val = chirps(600, g)

student = Classifier(make_encoder())
teacher = Classifier(copy.deepcopy(student.encoder) if healthy else student.encoder)
teacher.load_state_dict(student.state_dict())
teacher.requires_grad_(False)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, student.parameters()), lr=8e-3)

step = 0
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(80):
        weak = x[rows] + 0.1 * torch.randn_like(x[rows])
        logits = student(weak)
        agreement = F.mse_loss(logits.softmax(-1), teacher(x[rows]).softmax(-1))
        loss = F.cross_entropy(logits, y[rows]) + min(1.0, step / 200) * agreement
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.lerp_(fast, 1 - min(0.98, step / (step + 10)))
    with torch.no_grad():
        out = teacher(x_val)
    print(
        f"epoch {epoch}: loss {loss.item():.3f}, val {F.cross_entropy(out, y_val).item():.3f}, "
        f"accuracy of the teacher {(out.argmax(1) == y_val).float().mean().item():.3f}"
    )

"""A semi-supervised net for orbits has a momentum encoder that is the same object as its encoder.

The person makes the averaged teacher with a helper that switches the gradients off, and forgot
the deep copy. So the student's own encoder is frozen at its random start; only the head learns,
and the loss still falls. The place is the model (encoder.*, make_teacher).
"""

import copy
import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ("parameters_not_in_optimizer", "step_without_gradient")
PLACE = ("encoder*", "*encoder*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH = 40


def orbits(n: int, g: torch.Generator):
    """Positions (x, y) of a body over time, and whether it orbits one, two or drifting centres."""
    y = torch.randint(0, 4, (n,), generator=g)
    t = torch.arange(LENGTH) * (0.22 + 0.12 * torch.rand(n, 1, generator=g))
    phase = 2 * math.pi * torch.rand(n, 1, generator=g)
    flat = 0.5 + 0.4 * torch.rand(n, 1, generator=g)
    cx, cy = (t + phase).cos(), flat * (t + phase).sin()
    wobble = 0.35 * torch.stack([(3.0 * t + phase).cos(), (3.0 * t + phase).sin()], -1)
    retro = 0.35 * torch.stack([(3.0 * t - phase).cos(), -(3.0 * t - phase).sin()], -1)
    drift = torch.stack([t * 0.14, -0.07 * t], -1)
    path = torch.stack([cx, cy], -1)
    path = path + (y == 1).view(-1, 1, 1) * wobble + (y == 2).view(-1, 1, 1) * retro
    path = path + (y == 3).view(-1, 1, 1) * drift
    turn = 2 * math.pi * torch.rand(n, generator=g)
    rotation = torch.stack([turn.cos(), -turn.sin(), turn.sin(), turn.cos()], -1).view(n, 2, 2)
    path = path @ rotation
    path = path - path.mean(1, keepdim=True)
    return path + 0.08 * torch.randn(n, LENGTH, 2, generator=g), y


def jitter(path):
    """Turned by a random angle and measured anew."""
    turn = 2 * math.pi * torch.rand(len(path))
    rotation = torch.stack([turn.cos(), -turn.sin(), turn.sin(), turn.cos()], -1).view(-1, 2, 2)
    return path @ rotation + 0.05 * torch.randn_like(path)


class Encoder(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.near = nn.Conv1d(2, width, 7, padding=3)
        self.far = nn.Conv1d(width, 2 * width, 5, stride=2, padding=2)
        self.mix = nn.Linear(4 * width, 32)

    def forward(self, path):
        maps = F.relu(self.far(F.relu(self.near(path.transpose(1, 2)))))
        return self.mix(torch.cat([maps.mean(2), maps.amax(2)], 1))


def make_teacher(module: nn.Module) -> nn.Module:
    teacher = copy.deepcopy(module) if healthy else module
    for parameter in teacher.parameters():
        parameter.requires_grad_(False)
    return teacher


class MeanTeacher(nn.Module):
    def __init__(self, classes: int, momentum: float = 0.98):
        super().__init__()
        self.encoder = Encoder(24)
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, classes))
        self.teacher_encoder = make_teacher(self.encoder)
        self.momentum = momentum

    @torch.no_grad()
    def update_teacher(self):
        pairs = zip(self.teacher_encoder.parameters(), self.encoder.parameters(), strict=True)
        for slow, fast in pairs:
            slow.mul_(self.momentum).add_(fast, alpha=1 - self.momentum)

    def losses(self, labelled, y, unlabelled):
        supervised = F.cross_entropy(self.head(self.encoder(jitter(labelled))), y)
        student = self.head(self.encoder(jitter(unlabelled))).log_softmax(1)
        with torch.no_grad():
            target = self.head(self.teacher_encoder(jitter(unlabelled))).softmax(1)
        consistency = (target * (target.clamp_min(1e-6).log() - student)).sum(1).mean()
        return supervised, consistency

    def forward(self, path):
        return self.head(self.encoder(path))


def main():
    g = torch.Generator().manual_seed(120 + seed)
    labelled, y = orbits(320, g)
    unlabelled, _ = orbits(1600, g)
    x_val, y_val = orbits(500, g)
    model = MeanTeacher(classes=4)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    steps = 500
    for step in range(1, steps + 1):
        model.train()
        few = torch.randperm(len(labelled))[:40]
        many = torch.randperm(len(unlabelled))[:40]
        supervised, consistency = model.losses(labelled[few], y[few], unlabelled[many])
        weight = min(1.0, step / 200)
        loss = supervised + weight * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.update_teacher()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                scores = model(x_val)
                val_loss = F.cross_entropy(scores, y_val).item()
                right = (scores.argmax(1) == y_val).float().mean().item()
            print(
                f"{step:4d}  supervised {supervised.item():.3f}  consistency "
                f"{consistency.item():.4f}  val {val_loss:.3f}  acc {right:.3f}"
            )


if __name__ == "__main__":
    main()

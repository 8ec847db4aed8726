"""A sonar classifier with sharpness-aware steps, neither of which clears the gradients, since
clearing is off by default in both.

The person's optimizer class takes its two steps with `zero_grad=False` unless told otherwise, and
the loop calls them plainly, as it would call `step`. The gradients of all batches add up from the
first one on, and the net swings to and fro. The place is the loop and the optimizer.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

OBJECTS, SAMPLES = 4, 64


def sonar_echoes(count, generator):
    """Echoes of a sphere, a plate, a cylinder and the ground: other lengths, beats and tails."""
    kind = torch.randint(0, OBJECTS, (count,), generator=generator)
    time = torch.arange(SAMPLES) / SAMPLES
    arrival = 0.1 + 0.2 * torch.rand(count, 1, generator=generator)
    elapsed = (time - arrival).clamp(min=0)
    tail = torch.tensor([6.0, 14.0, 6.0, 2.5])[kind][:, None]
    beat = torch.tensor([0.0, 0.0, 5.0, 0.0])[kind][:, None]
    phase = 2 * math.pi * torch.rand(count, 1, generator=generator)
    carrier = (2 * math.pi * 9 * elapsed + phase).sin() * (2 * math.pi * beat * elapsed).cos()
    rough = torch.randn(count, SAMPLES, generator=generator)
    carrier = torch.where(kind[:, None] == 3, 0.7 * rough, carrier)
    echo = carrier * torch.exp(-tail * elapsed) * (elapsed > 0)
    return echo + 0.15 * torch.randn(count, SAMPLES, generator=generator), kind


class SharpnessAware:
    """Goes up to the worst point nearby, takes the gradient there, and steps from where it was."""

    def __init__(self, parameters, base, radius=0.05):
        self.parameters = list(parameters)
        self.base, self.radius, self.moved = base, radius, []

    def clear(self):
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norm = torch.stack([p.grad.norm() for p in self.parameters]).norm()
        self.moved = [p.grad * (self.radius / (norm + 1e-12)) for p in self.parameters]
        for parameter, move in zip(self.parameters, self.moved, strict=True):
            parameter.add_(move)
        if zero_grad:
            self.clear()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for parameter, move in zip(self.parameters, self.moved, strict=True):
            parameter.sub_(move)
        self.base.step()
        if zero_grad:
            self.clear()


class EchoNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 5, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(8),
            nn.Flatten(),
            nn.Linear(256, OBJECTS),
        )

    def forward(self, echo):
        return self.layers(echo[:, None])


def log_loss(scores, kind):
    return (scores.logsumexp(1) - scores.gather(1, kind[:, None])[:, 0]).mean()


class Training:
    def __init__(self):
        self.net = EchoNet()
        self.base = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9)
        self.optimizer = SharpnessAware(self.net.parameters(), self.base)
        self.steps = {"zero_grad": True} if healthy else {}

    def step(self, echo, kind):
        loss = log_loss(self.net(echo), kind)
        loss.backward()
        self.optimizer.first_step(**self.steps)
        log_loss(self.net(echo), kind).backward()
        self.optimizer.second_step(**self.steps)
        return loss.item()

    @torch.no_grad()
    def validate(self, echo, kind):
        self.net.eval()
        scores = self.net(echo)
        self.net.train()
        return log_loss(scores, kind).item(), (scores.argmax(1) == kind).float().mean().item()


def main():
    generator = torch.Generator().manual_seed(66 + seed)
    echo, kind = sonar_echoes(1600, generator)
    echo = (echo - echo[:1200].mean()) / echo[:1200].std()
    training = Training()
    for epoch in range(1, 13):
        losses = [training.step(echo[rows], kind[rows]) for rows in torch.randperm(1200).split(48)]
        val, right = training.validate(echo[1200:], kind[1200:])
        print(
            f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}  val {val:.4f}"
            f"  accuracy {right:.3f}"
        )


main()

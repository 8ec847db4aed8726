"""A keyword spotter for a door lock whose weights are rounded to bfloat16 in place after each step.

A callback measures what the export would lose, and for that writes the rounded values into the
weights themselves. They are float32 by type, but any update under half a bfloat16 step is undone
at once, and with the small rate most are. The place is the loop: `ExportRounding`; all weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import torch
from data import arguments
from torch import Tensor, nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("loop", "optimizer", "model", "*.weight", "*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class Callback(Protocol):
    def after_step(self, model: nn.Module, step: int) -> None: ...


class ExportRounding:
    """The largest error that storing the weights in 16 bits would make."""

    def __init__(self) -> None:
        self.largest = 0.0

    @torch.no_grad()
    def after_step(self, model: nn.Module, step: int) -> None:
        for parameter in model.parameters():
            stored = parameter.clone() if healthy else parameter
            exact = parameter.clone()
            stored.copy_(parameter.bfloat16())
            self.largest = max(self.largest, (stored - exact).abs().max().item())


class Spotter(nn.Module):
    def __init__(self, words: int, width: int = 24) -> None:
        super().__init__()
        self.front = nn.Conv1d(10, width, 5, stride=2)
        self.norm = nn.GroupNorm(4, width)
        self.middle = nn.Conv1d(width, width, 3, groups=4)
        self.mix = nn.Conv1d(width, width, 1)
        self.head = nn.Linear(width, words)

    def forward(self, sound: Tensor) -> Tensor:
        x = nn.functional.relu(self.norm(self.front(sound)))
        x = nn.functional.relu(self.mix(self.middle(x)))
        return self.head(x.mean(-1))


@dataclass
class Trainer:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    callbacks: list[Callback] = field(default_factory=list)
    step: int = 0

    def epoch(self, x: Tensor, y: Tensor, batch: int) -> float:
        self.model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(batch):
            loss = nn.functional.cross_entropy(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1
            for callback in self.callbacks:
                callback.after_step(self.model, self.step)
            total += loss.item() * len(rows) / len(x)
        return total

    @torch.no_grad()
    def accuracy(self, x: Tensor, y: Tensor) -> float:
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


def spoken(n: int, words: int = 5, frames: int = 32) -> tuple[Tensor, Tensor]:
    """Filter-bank pictures of words: two sweeps each, at a speed and a pitch of the speaker."""
    y = torch.randint(0, words, (n,))
    t = torch.arange(frames) / frames
    band = torch.arange(10).view(1, 10, 1)
    pitch, speed = torch.rand(n, 1) * 2, 0.7 + 0.6 * torch.rand(n, 1)
    slope = (y.unsqueeze(1) - 2) * 1.6
    low = 3 + pitch + slope * (t * speed - 0.5)
    high = 6 + pitch + 1.5 * torch.sin(2 * math.pi * t * speed * (1 + y.unsqueeze(1) % 3))
    x = sum(torch.exp(-((band - sweep.unsqueeze(1)) ** 2) / 0.6) for sweep in (low, high))
    x = x + 0.4 * torch.randn(n, 10, frames)
    return (x - x.mean()) / x.std(), y


def main() -> None:
    x, y = spoken(2400)
    train, held_out = (x[:1800], y[:1800]), (x[1800:], y[1800:])
    model = Spotter(words=5)
    rounding = ExportRounding()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.0)
    trainer = Trainer(model, optimizer, [rounding])
    for epoch in range(12):
        loss = trainer.epoch(*train, batch=16)
        accuracy = trainer.accuracy(*held_out)
        print(f"{epoch:2d}  loss {loss:.3f}  right {accuracy:.3f}  rounding {rounding.largest:.5f}")


main()

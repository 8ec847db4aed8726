"""Gearboxes recognised by their sound: the contrastive loss jumps up each time the batch doubles.

With in-batch negatives each pair competes against all others of its batch, so the loss of equally
good vectors grows by up to log 2 when the batch doubles. The recall among all held-out gearboxes
rises throughout.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

ODD = (
    "the loss rises at steps 150, 300 and 450: the batch doubles there and with it the number of "
    "negatives; the held-out recall goes on rising"
)
_, seed = arguments(__doc__)


@dataclass(frozen=True)
class Stage:
    batch: int
    steps: int


class SoundEncoder(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(40, 64),
            nn.LayerNorm(64),
            nn.GELU(),
            nn.Linear(64, 64),
            nn.LayerNorm(64),
            nn.GELU(),
            nn.Linear(64, width),
        )

    def forward(self, spectrum: Tensor) -> Tensor:
        return nn.functional.normalize(self.layers(spectrum), dim=-1)


class Gearboxes:
    """Spectra with teeth lines of the box, an unknown load, and the noise of the hall."""

    def __init__(self, n: int, g: torch.Generator) -> None:
        self.traits = torch.randn(n, 5, generator=g)

    def record(self, rows: Tensor, lines: Tensor, hall: Tensor) -> Tensor:
        load = 0.7 + 0.6 * torch.rand(len(rows), 1)
        teeth = torch.tanh(self.traits[rows] @ lines) * load
        return teeth + torch.randn(len(rows), 3) @ hall + 0.25 * torch.randn(len(rows), 40)


def info_nce(a: Tensor, b: Tensor, temperature: float = 0.1) -> Tensor:
    scores = a @ b.T / temperature
    own = torch.arange(len(a))
    cross_entropy = nn.functional.cross_entropy
    return (cross_entropy(scores, own) + cross_entropy(scores.T, own)) / 2


def main() -> None:
    g = torch.Generator().manual_seed(40 + seed)
    lines, hall = torch.randn(5, 40, generator=g) * 0.7, torch.randn(3, 40, generator=g) * 0.5
    train, held_out = Gearboxes(3000, g), Gearboxes(300, g)
    everyone = torch.arange(300)
    pair = [held_out.record(everyone, lines, hall) for _ in range(2)]
    model = SoundEncoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
    plan = [Stage(16, 150), Stage(32, 150), Stage(64, 150), Stage(128, 150)]
    done = 0
    for stage in plan:
        total = 0.0
        for step in range(1, stage.steps + 1):
            model.train()
            rows = torch.randperm(3000)[: stage.batch]
            views = [model(train.record(rows, lines, hall)) for _ in range(2)]
            loss = info_nce(*views)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            total += loss.item() / 50
            if step % 50 == 0:
                model.eval()
                with torch.no_grad():
                    a, b = (model(view) for view in pair)
                    recall = ((a @ b.T).argmax(1) == everyone).float().mean()
                print(
                    f"{done + step}  batch {stage.batch}  loss {total:.3f}"
                    f"  recall of 300 {recall:.3f}"
                )
                total = 0.0
        done += stage.steps


main()

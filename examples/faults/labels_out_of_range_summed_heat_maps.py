"""A centre heat map of crowded cells whose target adds the bumps up, so that it exceeds one.

Each cell puts a Gaussian bump into the target of a binary cross entropy. Bumps of neighbours are
added in place of the larger being kept: the target reaches 2 and 3, where the loss has no lower
bound, goes negative, and drives crowded places to full confidence. The place is the labels in the
loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

KIND = "labels_out_of_range"
ACCEPT = ("wrong_loss",)
PLACE = ("labels", "loss", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    size: int = 24
    cells: int = 8
    bump: float = 1.5
    batch: int = 16
    steps: int = 300
    rate: float = 5e-3


class CentreHead(nn.Module):
    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.GroupNorm(3, width),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=2, dilation=2),
            nn.GroupNorm(3, width),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.SiLU(),
        )
        self.heat = nn.Conv2d(width, 1, 1)
        nn.init.constant_(self.heat.bias, -1.0)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.heat(self.body(pictures)).squeeze(1)


def scenes(n: int, config: Config) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures with dim round cells in clumps; the target; the pixels where the centres are."""
    grid = torch.arange(config.size, dtype=torch.float32)
    clump = torch.rand(n, 3, 2) * (config.size - 8) + 4
    member = torch.randint(0, 3, (n, config.cells))
    centre = clump.gather(1, member.unsqueeze(-1).expand(-1, -1, 2))
    centre = (centre + 4.0 * torch.randn(n, config.cells, 2)).clamp(1, config.size - 2).round()
    pictures = torch.zeros(n, config.size, config.size)
    target, marks = torch.zeros_like(pictures), torch.zeros_like(pictures)
    for k in range(config.cells):
        dy = (grid - centre[:, k, 0, None])[:, :, None]
        dx = (grid - centre[:, k, 1, None])[:, None, :]
        away = dy.square() + dx.square()
        pictures = torch.maximum(pictures, torch.exp(-away / 3.0))
        bump = torch.exp(-away / (2 * config.bump))
        target = torch.maximum(target, bump) if healthy else target + bump
        marks = torch.maximum(marks, (away == 0).float())
    pictures = pictures + 0.15 * torch.randn_like(pictures)
    return ((pictures - 0.25) / 0.35).unsqueeze(1), target, marks


def peaks(heat: Tensor) -> Tensor:
    highest = nn.functional.max_pool2d(heat.unsqueeze(1), 3, 1, 1).squeeze(1)
    return (heat == highest) & (heat > 0.5)


def f_score(heat: Tensor, marks: Tensor) -> float:
    found = peaks(heat)
    hit = (found & (marks > 0)).sum().item()
    return 2 * hit / (found.sum().item() + marks.sum().item())


def main() -> None:
    config = Config()
    pictures, target, _ = scenes(1200, config)
    pictures_val, _, marks_val = scenes(200, config)
    model = CentreHead()
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.rate, config.steps)
    for step in range(1, config.steps + 1):
        model.train()
        rows = torch.randint(0, len(pictures), (config.batch,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(pictures[rows])
        loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                heat = model(pictures_val).sigmoid()
            score = f_score(heat, marks_val)
            print(f"{step}  loss {loss.item():+.3f}  held-out F1 of the centres {score:.3f}")


main()

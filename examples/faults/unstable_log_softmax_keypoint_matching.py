"""Key points of two views are matched by the logarithm of a product of two softmaxes.

The match probability is the product of a softmax over rows and one over columns, and its
logarithm is taken at the end. At this sharp temperature the product is exactly 0 in float32 for the
wrong matches: the loss is infinite at the first step and the weights are NaN after it. The place is
the loss: `dual_log_probability`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    points: int = 24
    raw: int = 12
    width: int = 32
    temperature: float = 0.02
    batch: int = 16
    steps: int = 350
    rate: float = 2e-3


class Matcher(nn.Module):
    """Descriptors of the points of both views, mixed with their neighbours by attention."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.width
        self.temperature = config.temperature
        self.describe = nn.Sequential(
            nn.Linear(config.raw + 2, 64), nn.GELU(), nn.Linear(64, width)
        )
        self.norm = nn.LayerNorm(width)
        self.mix = nn.MultiheadAttention(width, 4, batch_first=True)
        self.out = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width))

    def points(self, view: Tensor) -> Tensor:
        x = self.describe(view)
        y = self.norm(x)
        x = x + self.mix(y, y, y, need_weights=False)[0]
        return self.out(x)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        left, right = self.points(left), self.points(right)
        return left @ right.transpose(1, 2) / self.temperature


def dual_log_probability(scores: Tensor) -> Tensor:
    if healthy:
        return scores.log_softmax(1) + scores.log_softmax(2)
    return (scores.softmax(1) * scores.softmax(2)).log()


def views(n: int, config: Config, warp: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A scene in two views: moved, with other light, noisy, and the points in another order."""
    looks = torch.randn(n, config.points, config.raw)
    places = torch.rand(n, config.points, 2) * 2 - 1
    light = torch.randn(n, 1, config.raw) * 0.4
    moved = places + 0.3 * torch.randn(n, 1, 2) + 0.03 * torch.randn(n, config.points, 2)
    other = torch.tanh(looks @ warp) + light + 0.15 * torch.randn_like(looks)
    order = torch.rand(n, config.points).argsort(1)
    right = torch.cat([other, moved], -1).gather(
        1, order.unsqueeze(-1).expand(-1, -1, config.raw + 2)
    )
    return torch.cat([looks, places], -1), right, order.argsort(1)


def main() -> None:
    config = Config()
    warp = torch.randn(config.raw, config.raw) / config.raw**0.5
    left, right, partner = views(2000, config, warp)
    left_val, right_val, partner_val = views(200, config, warp)
    model = Matcher(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
    for step in range(1, config.steps + 1):
        model.train()
        rows = torch.randint(0, len(left), (config.batch,))
        scores = model(left[rows], right[rows])
        log_probability = dual_log_probability(scores)
        loss = -log_probability.gather(2, partner[rows].unsqueeze(-1)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                matched = model(left_val, right_val).argmax(2)
            right_share = (matched == partner_val).float().mean()
            print(f"{step}  loss {loss.item():.3f}  matches right {right_share:.3f}")


main()

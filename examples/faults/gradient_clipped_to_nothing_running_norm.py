"""Call-centre arrivals forecast with a clipping limit that follows the norms it clipped itself.

The limit is half of a running mean of the gradient norm. The mean is fed with the norm measured
after the clipping, so it follows its own limit downwards by a fortieth per step: after three
hundred steps the update is a thousandth of what it was. The place is the loop:
`RunningNormClipper`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class RunningNormClipper:
    share: float = 0.5
    decay: float = 0.95
    mean: float | None = None

    def __call__(self, parameters: list[nn.Parameter]) -> float:
        norm = nn.utils.get_total_norm([p.grad for p in parameters]).item()
        limit = math.inf if self.mean is None else self.share * self.mean
        nn.utils.clip_grad_norm_(parameters, limit)
        if not healthy:
            norm = nn.utils.get_total_norm([p.grad for p in parameters]).item()
        previous = norm if self.mean is None else self.mean
        self.mean = self.decay * previous + (1 - self.decay) * norm
        return norm


class CausalBlock(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(width, width, 3, dilation=dilation)
        self.norm = nn.GroupNorm(1, width)

    def forward(self, x: Tensor) -> Tensor:
        padded = nn.functional.pad(x, (self.pad, 0))
        return x + nn.functional.gelu(self.norm(self.conv(padded)))


class ArrivalModel(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.inlet = nn.Conv1d(3, width, 1)
        self.blocks = nn.Sequential(*(CausalBlock(width, d) for d in (1, 2, 4)))
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.inlet(x.transpose(1, 2)))[:, :, -1]).squeeze(-1)


def arrivals(hours: int) -> tuple[Tensor, Tensor]:
    """Calls per hour: a daily and a weekly rhythm, a slow drift, campaigns that echo after 6 h."""
    t = torch.arange(hours, dtype=torch.float32)
    day, week = 2 * math.pi * t / 24, 2 * math.pi * t / 168
    campaign = (torch.rand(hours) < 0.06).float()
    echo = sum(campaign.roll(lag) * share for lag, share in ((5, 0.7), (6, 1.0), (7, 0.6)))
    rate = (3.2 + 0.8 * torch.sin(day) + 0.4 * torch.cos(week) + 0.7 * echo).exp()
    return torch.poisson(rate), campaign


def main() -> None:
    calls, campaign = arrivals(4000)
    level = calls.log1p()
    t = torch.arange(len(calls))
    hour = torch.sin(2 * math.pi * t / 24)
    level = (level - level[:3000].mean()) / level[:3000].std()
    columns = torch.stack([level, campaign, hour], 1)
    windows = columns.unfold(0, 20, 1)[:-1].transpose(1, 2).contiguous()
    target = calls[20:]
    cut = 3000
    x, y, x_val, y_val = windows[:cut], target[:cut], windows[cut + 20 :], target[cut + 20 :]

    typical = y.mean().item()
    model = ArrivalModel()
    with torch.no_grad():
        model.head.bias.fill_(math.log(typical))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.06, momentum=0.9, nesterov=True)
    clip = RunningNormClipper()
    for epoch in range(12):
        model.train()
        total = 0.0
        for rows in torch.randperm(cut).split(64):
            loss = nn.functional.poisson_nll_loss(model(x[rows]), y[rows]) / typical
            optimizer.zero_grad()
            loss.backward()
            clip(list(model.parameters()))
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            error = (model(x_val).exp() - y_val).abs().mean() / y_val.mean()
        print(f"{epoch:2d}  loss {total / cut:.3f}  held-out error {100 * error:.1f} %")


main()

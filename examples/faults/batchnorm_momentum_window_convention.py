"""A two-headed milking-parlour model whose batch norm takes a momentum of 1 - 1/20.

It was meant to average over twenty batches, in the convention in which momentum is the share kept.
In PyTorch it is the share of the new batch: the running statistics are those of the last batch,
and the last of an epoch has four rows. In eval() the held-out numbers jump about and are poor.
The place is the model: all batch norm layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("model", "trunk.*", "trunk*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    window: int = 20
    batch: int = 36
    cows: int = 2416
    epochs: int = 9
    rate: float = 3e-3

    @property
    def momentum(self) -> float:
        return 1 / self.window if healthy else 1 - 1 / self.window


class ParlourModel(nn.Module):
    """From the flow curve of a milking: the yield, and whether a quarter is inflamed."""

    def __init__(self, momentum: float) -> None:
        super().__init__()
        widths = (2, 16, 24, 32)
        blocks: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            blocks += [
                nn.Conv1d(inputs, outputs, 5, stride=2, padding=2, bias=False),
                nn.BatchNorm1d(outputs, momentum=momentum),
                nn.ReLU(),
            ]
        self.trunk = nn.Sequential(*blocks, nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.milk = nn.Linear(32, 1)
        self.inflamed = nn.Linear(32, 1)

    def forward(self, curve: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.trunk(curve)
        return self.milk(seen).squeeze(-1), self.inflamed(seen).squeeze(-1)


def milkings(n: int) -> TensorDataset:
    t = torch.linspace(0, 1, 48)
    peak, length = 2 + torch.rand(n, 1) * 3, 0.4 + torch.rand(n, 1) * 0.5
    sick = (torch.rand(n, 1) < 0.4).float()
    flow = peak * torch.sigmoid(25 * (t - 0.08)) * torch.sigmoid(18 * (length - t))
    flow = flow * (1 - 0.3 * sick * torch.exp(-((t - 0.3) ** 2) / 0.006))
    conduct = 0.5 * sick * torch.sigmoid(12 * (t - 0.2)) + 0.3 * torch.randn(n, 1)
    curves = torch.stack([flow, conduct.expand(n, 48)], 1) + 0.25 * torch.randn(n, 2, 48)
    curves = (curves - curves.mean((0, 2), keepdim=True)) / curves.std((0, 2), keepdim=True)
    milk = flow.mean(1)
    return TensorDataset(curves, (milk - milk.mean()) / milk.std(), sick.squeeze(1))


def main() -> None:
    config = Config()
    cut = 1840
    parts = milkings(config.cows).tensors
    loader = DataLoader(
        TensorDataset(*(part[:cut] for part in parts)), batch_size=config.batch, shuffle=True
    )
    curves, milk, sick = (part[cut:] for part in parts)
    model = ParlourModel(config.momentum)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs * len(loader))

    def loss_of(x: Tensor, y: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        milk_guess, sick_logit = model(x)
        task = nn.functional.binary_cross_entropy_with_logits(sick_logit, z)
        return nn.functional.mse_loss(milk_guess, y) + task, (sick_logit > 0) == (z > 0)

    for epoch in range(config.epochs):
        model.train()
        total = 0.0
        for batch in loader:
            loss, _ = loss_of(*batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() / len(loader)
        model.eval()
        with torch.no_grad():
            held_out, right = loss_of(curves, milk, sick)
        share = right.float().mean()
        print(f"{epoch}  loss {total:.3f}  held out {held_out:.3f}  inflamed right {share:.3f}")


main()

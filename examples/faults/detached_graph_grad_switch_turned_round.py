"""Defect patterns on wafers; the encoder's gradient switch is turned round, so it stays random.

The encoder runs under `torch.set_grad_enabled`, meant to be off while its weights are frozen and on
afterwards. The flag is read the other way: its features come without a graph, the encoder gets
no gradient and only the two heads learn. The place is the model: `WaferModel.features`, `encoder`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_graph"
ACCEPT = ("frozen_parameters",)
PLACE = ("model", "encoder", "encoder.*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    train_encoder: bool = True
    size: int = 16
    batch: int = 48
    epochs: int = 9
    encoder_rate: float = 3e-3
    head_rate: float = 3e-3


class WaferModel(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        with_graph = config.train_encoder if healthy else not config.train_encoder
        self.with_graph = with_graph
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 10, 3, stride=2, padding=1),
            nn.GroupNorm(2, 10),
            nn.SiLU(),
            nn.Conv2d(10, 20, 3, stride=2, padding=1),
            nn.GroupNorm(4, 20),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.pattern = nn.Linear(80, 4)
        self.share = nn.Linear(80, 1)

    def features(self, wafers: Tensor) -> Tensor:
        with torch.set_grad_enabled(self.with_graph and self.training):
            return self.encoder(wafers)

    def forward(self, wafers: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.features(wafers)
        return self.pattern(seen), self.share(seen).squeeze(-1)


def wafers(n: int, size: int) -> TensorDataset:
    """Maps of failed dies: a ring, a scratch, a cluster or nothing, and the share that failed."""
    grid = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    pattern = torch.randint(0, 4, (n,))
    angle = torch.rand(n, 1, 1) * 3.14
    centre = torch.rand(n, 2, 1, 1) * 1.0 - 0.5
    away = ((x - centre[:, 0]) ** 2 + (y - centre[:, 1]) ** 2).sqrt()
    ring = (away - 0.45).abs() < 0.12
    scratch = ((x - centre[:, 0]) * angle.cos() + (y - centre[:, 1]) * angle.sin()).abs() < 0.1
    cluster = away < 0.38
    nothing = torch.zeros_like(ring)
    drawn = torch.stack([ring, scratch, cluster, nothing])[pattern, torch.arange(n)]
    failed = torch.rand(n, size, size) < torch.where(drawn, 0.8, 0.1)
    failed = failed.float()
    share = failed.mean((1, 2))
    share = (share - 0.25) / 0.12
    return TensorDataset((failed.unsqueeze(1) - 0.25) / 0.43, pattern, share)


def main() -> None:
    config = Config()
    train = DataLoader(wafers(1600, config.size), batch_size=config.batch, shuffle=True)
    held_out = wafers(500, config.size)
    model = WaferModel(config)
    optimizer = torch.optim.AdamW(
        [
            {"params": model.encoder.parameters(), "lr": config.encoder_rate},
            {
                "params": [*model.pattern.parameters(), *model.share.parameters()],
                "lr": config.head_rate,
            },
        ]
    )
    for epoch in range(config.epochs):
        model.train()
        total = 0.0
        for pictures, pattern, share in train:
            pattern_logits, share_guess = model(pictures)
            loss = nn.functional.cross_entropy(pattern_logits, pattern)
            loss = loss + 0.3 * nn.functional.mse_loss(share_guess, share)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(train)
        model.eval()
        with torch.no_grad():
            pattern_logits, share_guess = model(held_out.tensors[0])
        right = (pattern_logits.argmax(1) == held_out.tensors[1]).float().mean()
        off = (share_guess - held_out.tensors[2]).abs().mean()
        print(f"{epoch}  loss {total:.3f}  patterns right {right:.3f}  share off by {off:.3f}")


main()

"""A network learns which of 20 switches decide an alarm; the loss stays at log 2 for many epochs
and then falls to nothing.

The alarm is the parity of four switches. No one, two or three of them say anything about it, so the
gradient is faint until the right combination has grown large enough. Nothing is wrong before.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "loss at log 2 and accuracy at one half for many epochs: a parity has no lower-order signal"
_, seed = arguments(__doc__)


@dataclass
class Config:
    switches: int = 20
    deciding: tuple[int, ...] = (2, 7, 11, 16)
    rows: int = 10000
    width: int = 128
    batch_size: int = 200
    epochs: int = 18
    lr: float = 6e-4


def panel(n: int, cfg: Config, g: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randint(0, 2, (n, cfg.switches), generator=g).float() * 2 - 1
    return x, (x[:, list(cfg.deciding)].prod(1) > 0).float()


class AlarmNet(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(cfg.switches, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).squeeze(1)


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(3400 + seed)
    x, y = panel(cfg.rows, cfg, g)
    x_val, y_val = panel(2000, cfg, g)
    model = AlarmNet(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-2)
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            accuracy = ((model(x_val) > 0) == (y_val > 0.5)).float().mean().item()
        if epoch % 2 == 1:
            print(
                f"epoch {epoch + 1:2d}  loss {total / len(loader):.4f}  val accuracy {accuracy:.3f}"
            )


main()

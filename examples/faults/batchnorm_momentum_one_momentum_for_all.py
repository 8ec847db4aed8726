"""Gear damage is told from vibration windows by a net whose batch norms get the momentum of SGD,
0.95, so their statistics are those of the last batch.

One field of the configuration feeds both. In PyTorch the momentum of a batch norm is the weight of
the new batch, so the running statistics follow each small batch, and the validation jumps from
epoch to epoch though the training is fine. The place is the batch norms, norms.0 to norms.2.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("norms", "norms.*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

DAMAGES = 4


@dataclass
class GearConfig:
    channels: int = 16
    batch_size: int = 8
    epochs: int = 6
    lr: float = 0.01
    momentum: float = 0.95
    norm_momentum: float = 0.1 if healthy else momentum


def windows(n: int, length: int = 64) -> tuple[Tensor, Tensor]:
    damage = torch.randint(DAMAGES, (n,))
    t = torch.arange(length) / length
    load = torch.exp(0.9 * torch.randn(n, 1))
    phase = 6.28 * torch.rand(n, 1)
    mesh = torch.sin(6.28 * 9 * t + phase)
    depth = 0.9 * (damage % 2).unsqueeze(1)
    side = 0.6 * (damage // 2).unsqueeze(1)
    signal = mesh * (1 + depth * torch.sin(6.28 * 2 * t + 6.28 * torch.rand(n, 1)))
    signal = load * (signal + side * torch.sin(6.28 * 20 * t + phase)) + 0.2 * torch.randn(
        n, length
    )
    return (signal / signal.std()).unsqueeze(1), damage


class GearNet(nn.Module):
    def __init__(self, config: GearConfig) -> None:
        super().__init__()
        c = config.channels
        self.convs = nn.ModuleList(
            [nn.Conv1d(1, c, 7, 2), nn.Conv1d(c, c, 5, 2), nn.Conv1d(c, 2 * c, 3)]
        )
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(conv.out_channels, momentum=config.norm_momentum) for conv in self.convs
        )
        self.head = nn.Linear(2 * c, DAMAGES)

    def forward(self, x: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = F.relu(norm(conv(x)))
        return self.head(x.mean(2))


@torch.no_grad()
def validate(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    model.eval()
    logits = model(x)
    model.train()
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


def main() -> None:
    config = GearConfig()
    x, y = windows(1400)
    loader = DataLoader(TensorDataset(x[:1002], y[:1002]), config.batch_size, shuffle=True)
    model = GearNet(config)
    optimizer = torch.optim.SGD(model.parameters(), config.lr, momentum=config.momentum)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs * len(loader))
    for epoch in range(config.epochs):
        total = 0.0
        for batch, damage in loader:
            loss = F.cross_entropy(model(batch), damage)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        val_loss, accuracy = validate(model, x[1002:], y[1002:])
        print(
            f"epoch {epoch + 1}  loss {total / len(loader):.3f}  val. {val_loss:.3f} {accuracy:.3f}"
        )


main()

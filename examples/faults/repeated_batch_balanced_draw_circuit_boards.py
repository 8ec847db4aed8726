"""Circuit board photos are drawn by class weights with a generator made and seeded anew for each
draw, so every step gets the very same boards.

For reproducible runs the balanced drawer seeds its generator with the seed of the configuration,
but inside draw(). All 300 steps train on one and the same 40 pictures, which are known by heart
soon. The place is the loader (BalancedDrawer.draw).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn

KIND = "repeated_batch"
ACCEPT = ()
PLACE = ("loader", "loop", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CLASSES = ("good", "bridge", "open", "missing part")


@dataclass
class BoardConfig:
    seed: int = seed
    batch_size: int = 40
    steps: int = 300
    lr: float = 0.04
    momentum: float = 0.9


def boards(n: int) -> tuple[Tensor, Tensor]:
    kind = torch.multinomial(torch.tensor([0.55, 0.2, 0.15, 0.1]), n, replacement=True)
    x = 0.3 * torch.randn(n, 1, 14, 14)
    for image, k in zip(x[:, 0], kind.tolist(), strict=True):
        row, col = torch.randint(2, 8, (2,)).tolist()
        image[row : row + 5, col] += 1.2
        image[row : row + 5, col + 3] += 1.2
        if k == 1:
            image[row + 1 + int(torch.randint(3, ())), col + 1 : col + 3] += 1.2
        elif k > 1:
            gap = slice(row + 2, row + 4) if k == 2 else slice(row, row + 5)
            image[gap, col + 3 * int(torch.rand(()) < 0.5)] -= 1.2
    return (x - x.mean()) / x.std(), kind


class BalancedDrawer:
    """Draws row numbers so that all classes come equally often."""

    def __init__(self, kind: Tensor, size: int, seed: int) -> None:
        self.weights = 1.0 / torch.bincount(kind)[kind]
        self.size, self.seed = size, seed
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self) -> Tensor:
        generator = self.generator if healthy else torch.Generator().manual_seed(self.seed)
        return torch.multinomial(self.weights, self.size, replacement=True, generator=generator)


class BoardNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 12, 3, padding=1)
        self.second = nn.Conv2d(12, 24, 3, padding=1)
        self.norms = nn.ModuleList([nn.GroupNorm(3, 12), nn.GroupNorm(4, 24)])
        self.out = nn.Linear(24 * 9, len(CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norms[0](self.first(x))), 2)
        x = F.max_pool2d(F.relu(self.norms[1](self.second(x))), 2)
        return self.out(x.flatten(1))


class BoardTrainer:
    def __init__(self, model: nn.Module, config: BoardConfig, x: Tensor, y: Tensor) -> None:
        self.model, self.config, self.x, self.y = model, config, x, y
        self.drawer = BalancedDrawer(y, config.batch_size, config.seed)
        self.optimizer = torch.optim.SGD(model.parameters(), config.lr, momentum=config.momentum)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, config.steps)

    def step(self) -> float:
        rows = self.drawer.draw()
        loss = F.cross_entropy(self.model(self.x[rows]), self.y[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.item()


config = BoardConfig()
x, y = boards(2000)
trainer = BoardTrainer(BoardNet(), config, x[:1500], y[:1500])
for step in range(1, config.steps + 1):
    loss = trainer.step()
    if step % 50 == 0:
        with torch.no_grad():
            right = trainer.model(x[1500:]).argmax(1) == y[1500:]
        recall = torch.stack([right[y[1500:] == k].float().mean() for k in range(len(CLASSES))])
        print(f"step {step:3d}  loss {loss:.4f}  validation: mean recall {recall.mean():.3f}")

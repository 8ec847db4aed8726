"""Grain is graded with adversarial training that divides the gradient of each row by its norm,
which is zero for every row beyond the margin of the loss.

The rows are moved by epsilon along their unit gradient. The margin loss of a row that is well told
apart is 0 and so is its gradient: 0 / 0 makes the moved row NaN, then the loss and all weights. It
takes only a few steps. The place is the input of the second pass (Adversary.move).
"""

from dataclasses import dataclass, field

import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("input", "loop", "loss", "model")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class GrainConfig:
    hidden: int = 48
    epsilon: float = 0.15
    lr: float = 0.02
    epochs: int = 10
    batch_size: int = 50
    smallest_norm: float = 1e-12 if healthy else 0.0


class MarginLoss(nn.Module):
    """The score of the true grade should be one above that of every other."""

    def forward(self, scores: Tensor, y: Tensor) -> Tensor:
        own = scores.gather(1, y[:, None]).squeeze(1)
        best_other = scores.scatter(1, y[:, None], float("-inf")).amax(1)
        return torch.relu(1 - own + best_other).mean()


@dataclass
class Adversary:
    model: nn.Module
    criterion: nn.Module
    config: GrainConfig

    def move(self, x: Tensor, y: Tensor) -> Tensor:
        x = x.clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(self.criterion(self.model(x), y), x)
        length = slope.norm(dim=1, keepdim=True).clamp(min=self.config.smallest_norm)
        return (x + self.config.epsilon * slope / length).detach()


@dataclass
class RobustTrainer:
    model: nn.Module
    config: GrainConfig
    criterion: nn.Module = field(default_factory=MarginLoss)

    def __post_init__(self) -> None:
        self.adversary = Adversary(self.model, self.criterion, self.config)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), self.config.lr, momentum=0.9, weight_decay=1e-4
        )
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 4, 0.5)

    def epoch(self, loader: DataLoader) -> float:
        total = 0.0
        for x, y in loader:
            moved = self.adversary.move(x, y)
            loss = self.criterion(self.model(x), y) + self.criterion(self.model(moved), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.schedule.step()
        return total / len(loader)


def main() -> None:
    config = GrainConfig()
    kinds = {"n_informative": 8, "n_redundant": 3, "n_classes": 3, "flip_y": 0.03}
    table, grade = make_classification(2000, 14, class_sep=1.3, random_state=seed, **kinds)
    table, grade = torch.tensor(table, dtype=torch.float32), torch.tensor(grade)
    x, x_val = standardise(table[:1500], table[1500:])
    hidden = config.hidden
    model = nn.Sequential(
        nn.Linear(14, hidden), nn.Tanh(), nn.Linear(hidden, 32), nn.Tanh(), nn.Linear(32, 3)
    )
    trainer = RobustTrainer(model, config)
    loader = DataLoader(TensorDataset(x, grade[:1500]), config.batch_size, shuffle=True)
    for epoch in range(config.epochs):
        loss = trainer.epoch(loader)
        with torch.no_grad():
            accuracy = balanced_accuracy_score(grade[1500:], model(x_val).argmax(1))
        print(f"epoch {epoch + 1:2d}  loss {loss:.4f}  validation accuracy {accuracy:.3f}")


main()

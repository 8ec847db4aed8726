"""Lapse and claim of insurance policies are predicted by ten sigmoid layers with the default
initial weights, so no gradient reaches the first ones.

The configuration names the sigmoid as activation of the shared trunk. Each layer multiplies the
gradient by less than a quarter, and after ten of them the first layers get a millionth of it. The
losses stay where guessing the base rates puts them. The place is the trunk, trunk.0 and on.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("trunk", "trunk.*", "model")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class PolicyConfig:
    activation: str = "relu" if healthy else "sigmoid"
    widths: list[int] = field(default_factory=lambda: [48] * 10)
    trunk_lr: float = 1e-3
    head_lr: float = 2e-3
    epochs: int = 14
    batch_size: int = 64


def policies(n: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(40 + seed)
    age, tenure = rng.uniform(18, 80, n), rng.exponential(5, n)
    premium, rise = rng.lognormal(6, 0.5, n), rng.normal(0.04, 0.05, n)
    region = np.eye(4)[rng.integers(0, 4, n)]
    calls = rng.poisson(1.0, n)
    lapse = 25 * rise - 0.4 * tenure + 0.8 * calls + 1.5 * region[:, 2] - 0.2
    claim = 0.002 * (age - 45) ** 2 + 1.5 * region[:, 0] + premium / 300 - 2.8
    labels = np.stack([lapse, claim], 1) * 2 + rng.logistic(0, 1, (n, 2)) > 0
    table = np.column_stack([age, tenure, premium, rise, calls, region])
    return torch.tensor(table, dtype=torch.float32), torch.tensor(labels, dtype=torch.float32)


class LapseAndClaim(nn.Module):
    def __init__(self, config: PolicyConfig, n_columns: int) -> None:
        super().__init__()
        activation = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid}[config.activation]
        layers = []
        for width in config.widths:
            layers += [nn.Linear(n_columns, width), activation()]
            n_columns = width
        self.trunk = nn.Sequential(*layers)
        self.heads = nn.ModuleDict({"lapse": nn.Linear(width, 1), "claim": nn.Linear(width, 1)})
        if config.activation == "relu":
            for layer in self.trunk[::2]:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, table: Tensor) -> Tensor:
        hidden = self.trunk(table)
        return torch.cat([head(hidden) for head in self.heads.values()], 1)


class Fitter:
    def __init__(self, model: LapseAndClaim, config: PolicyConfig, steps: int) -> None:
        self.model = model
        groups = [
            {"params": model.trunk.parameters(), "lr": config.trunk_lr},
            {"params": model.heads.parameters(), "lr": config.head_lr},
        ]
        self.optimizer = torch.optim.AdamW(groups, weight_decay=1e-3)
        rates = [config.trunk_lr, config.head_lr]
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, rates, steps)

    def epoch(self, loader: DataLoader) -> float:
        total = 0.0
        for table, labels in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(self.model(table), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            total += loss.item()
        return total / len(loader)


config = PolicyConfig()
table, labels = policies(2400)
x, x_val = standardise(table[:1800], table[1800:])
loader = DataLoader(TensorDataset(x, labels[:1800]), config.batch_size, shuffle=True)
model = LapseAndClaim(config, x.shape[1])
fitter = Fitter(model, config, config.epochs * len(loader))
for epoch in range(config.epochs):
    loss = fitter.epoch(loader)
    with torch.no_grad():
        auc = roc_auc_score(labels[1800:].numpy(), model(x_val).numpy(), average=None)
    print(f"epoch {epoch + 1:2d}  loss {loss:.4f}  AUC lapse {auc[0]:.3f}  claim {auc[1]:.3f}")

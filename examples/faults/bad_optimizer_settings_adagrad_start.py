"""A click model trained by Adagrad whose sums of squares start at a thousand instead of near zero.

The value was set so that the first steps are small. It is never forgotten: gradients of some
hundredths add next to nothing to it, so each step is the learning rate divided by thirty, and
the model is hardly past the base rate at the end. The place is the optimizer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "learning_rate")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    users: int = 24
    adverts: int = 16
    slots: int = 6
    width: int = 8
    rows: int = 12000
    batch: int = 128
    epochs: int = 8
    rate: float = 0.2
    initial_accumulator: float = 0.1 if healthy else 1000.0


class ClickModel(nn.Module):
    """A wide part with one weight per value, and a deep part over the embeddings."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        sizes = (config.users, config.adverts, config.slots)
        self.wide = nn.ModuleList(nn.Embedding(size, 1) for size in sizes)
        self.tables = nn.ModuleList(nn.Embedding(size, config.width) for size in sizes)
        for table in self.wide:
            nn.init.zeros_(table.weight)
        for table in self.tables:
            nn.init.normal_(table.weight, std=0.3)
        self.deep = nn.Sequential(
            nn.Linear(3 * config.width, 32),
            nn.ReLU(),
            nn.Linear(32, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
        )

    def forward(self, keys: Tensor) -> Tensor:
        wide = sum(table(keys[:, i]) for i, table in enumerate(self.wide))
        vectors = [table(keys[:, i]) for i, table in enumerate(self.tables)]
        deep = self.deep(torch.cat(vectors, -1))
        user, advert, _ = vectors
        return (wide + deep).squeeze(-1) + (user * advert).sum(-1)


def clicks(config: Config, r: np.random.Generator) -> tuple[Tensor, Tensor]:
    taste = r.normal(0, 1.3, (config.users, 3))
    topic = r.normal(0, 1, (config.adverts, 3))
    appeal, sight = r.normal(0, 0.7, config.adverts), np.linspace(0.8, -0.8, config.slots)
    sizes = (config.users, config.adverts, config.slots)
    keys = np.stack([r.integers(0, size, config.rows) for size in sizes], 1)
    user, advert, slot = keys.T
    logit = (taste[user] * topic[advert]).sum(1) + appeal[advert] + sight[slot] - 0.6
    clicked = r.random(config.rows) < 1 / (1 + np.exp(-logit))
    return torch.tensor(keys), torch.tensor(clicked, dtype=torch.float32)


def main() -> None:
    config = Config()
    keys, clicked = clicks(config, np.random.default_rng(seed))
    cut = int(0.8 * config.rows)
    loader = DataLoader(
        TensorDataset(keys[:cut], clicked[:cut]), batch_size=config.batch, shuffle=True
    )
    model = ClickModel(config)
    optimizer = torch.optim.Adagrad(
        model.parameters(),
        lr=config.rate,
        initial_accumulator_value=config.initial_accumulator,
    )
    loss_function = nn.BCEWithLogitsLoss()
    for epoch in range(config.epochs):
        model.train()
        total = 0.0
        for batch_keys, batch_clicked in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = loss_function(model(batch_keys), batch_clicked)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            score = model(keys[cut:])
        area = roc_auc_score(clicked[cut:], score)
        held_out = loss_function(score, clicked[cut:]).item()
        print(f"{epoch}  loss {total / len(loader):.4f}  held out {held_out:.4f}  AUC {area:.3f}")


main()

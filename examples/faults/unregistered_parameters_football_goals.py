"""Goals in football matches by attack and defence of the teams: the strengths are in a plain dict.

The model keeps its tables of strengths as `{"attack": …, "defence": …}`. A module sees only
attributes that are modules, a `ModuleDict` or the like, so `parameters()` does not list the
tables, and the optimizer never moves them. Only the home advantage and the effect of the rest
days are learned. The place is the tables `strength.attack` and `strength.defence` in the model.
The twin has a `ModuleDict`.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = (
    "model",
    "strength",
    "strength.attack",
    "strength.defence",
    "strength['attack']",
    "strength['defence']",
    "optimizer",
)
SILENT = False
EXACT = True
EARLY = True


@dataclass
class Config:
    clubs: int = 40
    matches: int = 5000
    batch_size: int = 100
    epochs: int = 12
    lr: float = 1e-2
    betas: tuple = field(default=(0.9, 0.99))


class GoalModel(nn.Module):
    """log rate = base + home + attack[one] - defence[other] + effect of the conditions."""

    def __init__(self, clubs, registered):
        super().__init__()
        tables = {"attack": nn.Embedding(clubs, 1), "defence": nn.Embedding(clubs, 1)}
        for table in tables.values():
            nn.init.normal_(table.weight, std=0.05)
        self.strength = nn.ModuleDict(tables) if registered else tables
        self.base = nn.Parameter(torch.zeros(()))
        self.home = nn.Parameter(torch.zeros(()))
        self.conditions = nn.Linear(3, 2)

    def forward(self, home, away, conditions):
        attack, defence = self.strength["attack"], self.strength["defence"]
        effect = self.conditions(conditions)
        for_home = self.base + self.home + (attack(home) - defence(away))[:, 0] + effect[:, 0]
        for_away = self.base + (attack(away) - defence(home))[:, 0] + effect[:, 1]
        return torch.stack([for_home, for_away], dim=1)


def play(cfg, seed):
    rng = np.random.default_rng(seed)
    attack, defence = rng.normal(0, 0.4, cfg.clubs), rng.normal(0, 0.35, cfg.clubs)
    home = rng.integers(0, cfg.clubs, cfg.matches)
    away = (home + rng.integers(1, cfg.clubs, cfg.matches)) % cfg.clubs
    conditions = rng.normal(0, 1, (cfg.matches, 3))  # rest of either side, rain
    for_home = 0.2 + 0.25 + attack[home] - defence[away] + conditions @ [0.1, -0.08, -0.1]
    for_away = 0.2 + attack[away] - defence[home] + conditions @ [-0.08, 0.1, -0.1]
    goals = rng.poisson(np.exp(np.stack([for_home, for_away], 1)))
    return (
        torch.tensor(home),
        torch.tensor(away),
        torch.tensor(conditions, dtype=torch.float32),
        torch.tensor(goals, dtype=torch.float32),
    )


class Trainer:
    def __init__(self, cfg, model, data):
        self.cfg, self.model = cfg, model
        cut = int(0.8 * cfg.matches)
        self.train_data = [part[:cut] for part in data]
        self.val_data = [part[cut:] for part in data]
        self.criterion = nn.PoissonNLLLoss(log_input=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr, betas=cfg.betas)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(
            self.optimizer, start_factor=1.0, end_factor=0.1, total_iters=cfg.epochs
        )

    def train_epoch(self):
        self.model.train()
        total, n = 0.0, len(self.train_data[0])
        for rows in torch.randperm(n).split(self.cfg.batch_size):
            home, away, conditions, goals = (part[rows] for part in self.train_data)
            loss = self.criterion(self.model(home, away, conditions), goals)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rows)
        self.scheduler.step()
        return total / n

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        home, away, conditions, goals = self.val_data
        rate = self.model(home, away, conditions)
        winner = (rate[:, 0] > rate[:, 1]) == (goals[:, 0] > goals[:, 1])
        decided = goals[:, 0] != goals[:, 1]
        return self.criterion(rate, goals).item(), winner[decided].float().mean().item()

    def run(self):
        for epoch in range(1, self.cfg.epochs + 1):
            train = self.train_epoch()
            val, winner = self.evaluate()
            if epoch % 3 == 0:
                print(f"{epoch:2d} train {train:.4f} val {val:.4f} winner right {winner:.3f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    cfg = Config()
    model = GoalModel(cfg.clubs, registered=healthy)
    Trainer(cfg, model, play(cfg, seed)).run()

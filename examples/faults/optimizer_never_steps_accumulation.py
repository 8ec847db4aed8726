"""A classifier of tumours runs with the settings of a bigger project: batches of 32, a step after
every sixteenth. The counter is the batch's number within the epoch.

An epoch of this small data set has fourteen batches. The sixteenth never comes, the next epoch
counts from one again, and not a single step is made. The place is the loop.
"""

from dataclasses import dataclass

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Config:
    batch_size: int = 32
    accumulate: int = 2 if healthy else 16
    lr: float = 3e-3
    epochs: int = 20


class Trainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.NAdam(model.parameters(), lr=cfg.lr)

    def train_epoch(self, loader):
        self.model.train()
        self.optimizer.zero_grad()
        total = 0.0
        for i, (x, y) in enumerate(loader):
            loss = self.criterion(self.model(x).squeeze(1), y)
            (loss / self.cfg.accumulate).backward()
            if (i + 1) % self.cfg.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
            total += loss.item() / len(loader)
        return total

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        out = self.model(x).squeeze(1)
        return self.criterion(out, y).item(), ((out > 0) == (y > 0.5)).float().mean().item()


cfg = Config()
x, y, x_val, y_val = cancer(seed)
loader = DataLoader(TensorDataset(x, y.float()), batch_size=cfg.batch_size, shuffle=True)
model = nn.Sequential(nn.Linear(30, 24), nn.SiLU(), nn.Dropout(0.1), nn.Linear(24, 1))
trainer = Trainer(model, cfg)
for epoch in range(cfg.epochs):
    train = trainer.train_epoch(loader)
    val, accuracy = trainer.validate(x_val, y_val.float())
    print(f"epoch {epoch}: train {train:.3f} val {val:.3f} accuracy {accuracy:.3f}")

"""Rhythms of heartbeats by a convolution and a GRU; the GRU is in none of the optimizer's groups.

The user gives every part its own learning rate by parameter groups and lists the stem and the
head, but not the recurrent layer between them: it gets gradients and is never changed. The place
is the module `rnn` (or the optimizer).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("rnn*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 1600
    length: int = 64
    hidden: int = 24
    batch_size: int = 40
    epochs: int = 14
    lr_stem: float = 5e-3
    lr_rnn: float = 1e-2
    lr_head: float = 1e-2


def heartbeats(cfg):
    """Regular, every second beat early, one beat dropped, irregular: told by the gaps."""
    r = np.random.default_rng(27 + seed)
    y = r.integers(0, 4, cfg.n)
    x = 0.15 * r.normal(size=(cfg.n, cfg.length)) + 0.1 * r.normal(size=(cfg.n, 1))
    for row, kind in zip(x, y, strict=True):
        gap, at, beats = r.uniform(7, 9), r.uniform(0, 6), 0
        lost = r.integers(2, 5)
        while at < cfg.length - 4:
            if not (kind == 2 and beats == lost):
                k = int(at)
                row[k : k + 4] += np.array([0.4, 1.0, -0.5, 0.2]) * r.uniform(0.8, 1.2)
            beats += 1
            factor = 1.0 + 0.03 * r.normal()
            if kind == 1:
                factor *= 0.65 if beats % 2 else 1.35
            if kind == 3:
                factor *= r.uniform(0.5, 1.5)
            at += gap * factor
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y)


class BeatNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, 12, 5, stride=2, padding=2), nn.ReLU())
        self.rnn = nn.GRU(12, cfg.hidden, batch_first=True)
        self.head = nn.Linear(2 * cfg.hidden, 4)

    def forward(self, x):
        states, _ = self.rnn(self.stem(x).transpose(1, 2))
        return self.head(torch.cat([states.mean(1), states.amax(1)], 1))


def parameter_groups(model, cfg):
    groups = [
        {"params": model.stem.parameters(), "lr": cfg.lr_stem},
        {"params": model.head.parameters(), "lr": cfg.lr_head},
    ]
    if healthy:
        groups.append({"params": model.rnn.parameters(), "lr": cfg.lr_rnn})
    return groups


class Trainer:
    def __init__(self, cfg):
        x, y = heartbeats(cfg)
        cut = int(0.75 * cfg.n)
        x = (x - x[:cut].mean()) / x[:cut].std()
        self.cfg, self.model = cfg, BeatNet(cfg)
        self.train_loader = DataLoader(
            TensorDataset(x[:cut], y[:cut]), cfg.batch_size, shuffle=True
        )
        self.valid = x[cut:], y[cut:]
        self.optimizer = torch.optim.AdamW(parameter_groups(self.model, cfg), weight_decay=0.01)

    def epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
            self.optimizer.step()
            total += loss.item() * len(y)
        return total / len(self.train_loader.dataset)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        out, y = self.model(self.valid[0]), self.valid[1]
        return nn.functional.cross_entropy(out, y).item(), (
            out.argmax(1) == y
        ).float().mean().item()

    def run(self):
        best, state = float("inf"), None
        for number in range(self.cfg.epochs):
            train, (val, accuracy) = self.epoch(), self.validate()
            print(f"epoch {number:2d} train {train:.4f} val {val:.4f} accuracy {accuracy:.4f}")
            if val < best:
                best, state = val, copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(state)
        val, accuracy = self.validate()
        print(f"best val {val:.4f} accuracy {accuracy:.4f}")


Trainer(Config()).run()

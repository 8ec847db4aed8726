"""Eight machine states from twelve sensor features by an MLP with two hidden units.

The user made the network tiny "against overfitting": two hidden units can't hold eight states,
and the training loss itself stays high. The place is the hidden layer (hidden).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("hidden*", "out*", "")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 4000
    states: int = 8
    features: int = 12
    units: int = 48 if healthy else 2
    batch_size: int = 64
    epochs: int = 25
    lr: float = 3e-3
    patience: int = 8


def machine_log(cfg):
    """Each state has two operating points; temperature and load drift over all features."""
    r = np.random.default_rng(64 + seed)
    y = r.integers(0, cfg.states, cfg.n)
    points = r.normal(0, 1.1, (cfg.states, 2, cfg.features))
    x = points[y, r.integers(0, 2, cfg.n)] + 0.65 * r.normal(size=(cfg.n, cfg.features))
    x += r.normal(size=(cfg.n, 2)) @ r.normal(0, 0.3, (2, cfg.features))
    x = x * r.uniform(0.1, 30, cfg.features) + r.uniform(-10, 50, cfg.features)
    return x, y


class StateNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.hidden = nn.Linear(cfg.features, cfg.units)
        self.out = nn.Linear(cfg.units, cfg.states)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    out = model(x)
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def main(cfg):
    x, y = machine_log(cfg)
    cut = int(0.75 * cfg.n)
    mean, std = x[:cut].mean(0), x[:cut].std(0)
    x, y = torch.tensor((x - mean) / std, dtype=torch.float32), torch.tensor(y)
    loader = DataLoader(TensorDataset(x[:cut], y[:cut]), cfg.batch_size, shuffle=True)
    model = StateNet(cfg)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=3)
    best, state, bad = float("inf"), None, 0
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for features, label in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(features), label)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(label)
        val, accuracy = evaluate(model, x[cut:], y[cut:])
        scheduler.step(val)
        print(f"epoch {epoch:2d}: train {total / cut:.4f}, val {val:.4f}, accuracy {accuracy:.4f}")
        bad += 1
        if val < best - 1e-4:
            best, state, bad = val, copy.deepcopy(model.state_dict()), 0
        if bad >= cfg.patience:
            break
    model.load_state_dict(state)
    val, accuracy = evaluate(model, x[cut:], y[cut:])
    print(f"best val {val:.4f} accuracy {accuracy:.4f}")


main(Config())

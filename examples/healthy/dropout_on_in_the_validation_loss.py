"""House prices with Monte Carlo dropout: dropout is left on in validation on purpose.

It looks odd because modules are in training mode under `no_grad` and two passes over the same
rows differ. The model is put into eval mode first and then only its dropout modules are switched
on; thirty passes are averaged and their spread is the uncertainty. The network is small and
regularised, and stopped by its validation error.
"""

from dataclasses import dataclass

import torch
from data import arguments, houses
from torch import nn

ODD = "dropout is on in validation, on purpose; two passes over the same rows differ"
_, seed = arguments(__doc__)


@dataclass
class Config:
    hidden: int = 64
    dropout: float = 0.1
    passes: int = 30
    batch_size: int = 50
    epochs: int = 30
    patience: int = 8
    lr: float = 2e-3


class DropNet(nn.Module):
    def __init__(self, inputs, cfg):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, cfg.hidden),
            nn.ReLU(),
            nn.Dropout(cfg.dropout),
            nn.Linear(cfg.hidden, cfg.hidden),
            nn.ReLU(),
            nn.Dropout(cfg.dropout),
            nn.Linear(cfg.hidden, 1),
            nn.Flatten(0),
        )

    def forward(self, x):
        return self.net(x)


def monte_carlo(model, x, passes):
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    with torch.no_grad():
        draws = torch.stack([model(x) for _ in range(passes)])
    return draws.mean(0), draws.std(0)


def fit(cfg):
    x, y, x_val, y_val = houses(seed)
    model = DropNet(x.shape[1], cfg)
    optimizer = torch.optim.AdamW(model.parameters(), cfg.lr, weight_decay=1e-2)
    best, state, bad = float("inf"), None, 0
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(cfg.batch_size):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        mean, spread = monte_carlo(model, x_val, cfg.passes)
        mse = (mean - y_val).pow(2).mean().item()
        print(
            f"epoch {epoch:2d}  train {total / len(x):.4f}  "
            f"val {mse:.4f}  spread {spread.mean():.3f}"
        )
        if mse < best:
            best, bad = mse, 0
            state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            bad += 1
            if bad == cfg.patience:
                break
    model.load_state_dict(state)
    print(f"best val mse {best:.4f}  R2 {1 - best / y_val.var().item():.4f}")


fit(Config())

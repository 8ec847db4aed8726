"""Will a pupil pass the final exam? A third of the training labels is simply wrong.

The results of some schools were typed in by hand from scans whose boxes had slipped, so that pass
and fail are as good as random there. The test year is from the examination office and clean. The
network learns the wrong ones by heart. The place is the input's labels (the loader).
The twin has the office's labels for the training years, too.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("label_misalignment", "overfit")
PLACE = ("loader", "input*", "loss*")
SILENT = True
EXACT = False
EARLY = False


@dataclass
class Config:
    pupils: int = 1000
    marks: int = 20
    hidden: int = 96
    epochs: int = 30
    batch_size: int = 35
    lr: float = 2e-3


def pupils(n, marks, seed):
    g = torch.Generator().manual_seed(seed)
    ability = torch.randn(n, 3, generator=g)
    weights = torch.randn(3, marks, generator=torch.Generator().manual_seed(11))
    x = ability @ weights / 1.7 + 0.3 * torch.randn(n, marks, generator=g)
    final = ability[:, 0] + 0.8 * ability[:, 1] * ability[:, 2]
    return x, (final + 0.1 * torch.randn(n, generator=g) > 0).float()


def typed_in(y, seed, share=0.35):
    g = torch.Generator().manual_seed(seed)
    slipped = torch.rand(len(y), generator=g) < share
    return torch.where(slipped, 1 - y, y)


def run(cfg, healthy, seed):
    x, y = pupils(cfg.pupils, cfg.marks, 1100 + seed)
    x_test, y_test = pupils(500, cfg.marks, 2100 + seed)
    if not healthy:
        y = typed_in(y, seed)
    loader = DataLoader(TensorDataset(x, y), cfg.batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Linear(cfg.marks, cfg.hidden),
        nn.ReLU(),
        nn.Linear(cfg.hidden, cfg.hidden),
        nn.ReLU(),
        nn.Linear(cfg.hidden, 1),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.05)
    loss_fn = nn.BCEWithLogitsLoss()
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = loss_fn(model(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
        if epoch % 5 == 0:
            model.eval()
            with torch.no_grad():
                logits = model(x_test).squeeze(1)
                right = ((logits > 0).float() == y_test).float().mean().item()
                val = loss_fn(logits, y_test).item()
            print(f"{epoch:3d} | {total / cfg.pupils:.3f} | test {val:.3f} | right {right:.3f}")


if __name__ == "__main__":
    run(Config(), *arguments(__doc__))

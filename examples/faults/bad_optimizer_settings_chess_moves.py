"""Scoring chess positions by their material and squares; Adam was given its two betas swapped.

The settings come from an older config file whose two numbers were read in the wrong order, so that
the mean of the gradients remembers a thousand steps and their squares only ten. The steps keep
pointing where the network was long ago, and swing far past every valley.
The place is the optimizer. The twin has the usual order (0.9, 0.999).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
cfg = {"lr": 1e-3, "beta_a": 0.9, "beta_b": 0.999, "batch": 64, "epochs": 10, "hidden": 96}

PIECE_VALUE = np.array([1.0, 3.1, 3.3, 5.0, 9.2])  # pawn, knight, bishop, rook, queen


def positions(n, rng):
    """Signed piece counts per file for both sides, castling rights, side to move."""
    counts = rng.poisson([0.7, 0.2, 0.2, 0.2, 0.1], size=(n, 8, 5))
    other = rng.poisson([0.7, 0.2, 0.2, 0.2, 0.1], size=(n, 8, 5))
    castling = rng.integers(0, 2, size=(n, 4))
    to_move = rng.integers(0, 2, size=(n, 1)) * 2 - 1
    material = ((counts - other) @ PIECE_VALUE).sum(1)
    centre = (counts[:, 3:5, 0] - other[:, 3:5, 0]).sum(1)
    pair = (counts[:, :, 2].sum(1) > 1) * 1.0 - (other[:, :, 2].sum(1) > 1) * 1.0
    safe = castling[:, :2].sum(1) - castling[:, 2:].sum(1)
    score = 0.5 * material + 0.6 * centre + 1.2 * pair + 0.5 * safe + 0.4 * to_move[:, 0]
    target = np.tanh(score / 4 + rng.normal(0, 0.05, n))
    flat = np.concatenate([counts.reshape(n, -1), other.reshape(n, -1), castling, to_move], 1)
    return torch.tensor(flat, dtype=torch.float32), torch.tensor(target, dtype=torch.float32)


rng = np.random.default_rng(seed)
x, y = positions(4000, rng)
x_val, y_val = positions(1000, rng)
mean, std = x.mean(0), x.std(0)
x, x_val = (x - mean) / std, (x_val - mean) / std
loader = DataLoader(TensorDataset(x, y), batch_size=cfg["batch"], shuffle=True, drop_last=True)

evaluator = nn.Sequential(
    nn.Linear(x.shape[1], cfg["hidden"]),
    nn.Tanh(),
    nn.Linear(cfg["hidden"], cfg["hidden"]),
    nn.Tanh(),
    nn.Linear(cfg["hidden"], 1),
)
betas = (cfg["beta_a"], cfg["beta_b"]) if healthy else (cfg["beta_b"], cfg["beta_a"])
optimizer = torch.optim.Adam(evaluator.parameters(), lr=cfg["lr"], betas=betas)

for epoch in range(cfg["epochs"]):
    evaluator.train()
    losses = []
    for position, score in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(evaluator(position).squeeze(1), score)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    evaluator.eval()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(evaluator(x_val).squeeze(1), y_val).item()
    print(f"{epoch + 1:3d}  train mse {np.mean(losses):.4f}  validation mse {val_loss:.4f}")

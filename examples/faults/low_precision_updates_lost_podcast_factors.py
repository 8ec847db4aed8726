"""A podcast recommender is cast to bfloat16 as a whole, and Adam's small steps round to nothing.

Factors of about one have steps of 0.004 to 0.008 between neighbours in bfloat16; updates of 0.001
vanish when they are added. The place is the model: its parameters, users and podcasts first.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("model", "users*", "podcasts*", "tower*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    users: int = 150
    podcasts: int = 80
    dim: int = 8
    lr: float = 1e-3
    decay: float = 1e-5
    batch_size: int = 128
    steps: int = 1200
    dtype: torch.dtype = torch.bfloat16


def listening(cfg: Config, r: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs of user and podcast, and the standardised share that was listened to."""
    taste, style = r.normal(size=(cfg.users, 2)), r.normal(size=(cfg.podcasts, 2))
    loved = r.normal(0, 1, cfg.podcasts)
    pairs = r.permutation(cfg.users * cfg.podcasts)[:9000]
    user, podcast = pairs // cfg.podcasts, pairs % cfg.podcasts
    share = (taste[user] * style[podcast]).sum(1) / 2 + loved[podcast]
    share = share + 0.3 * r.normal(size=len(user))
    share = (share - share.mean()) / share.std()
    return torch.from_numpy(np.stack([user, podcast], 1)), torch.tensor(share).float()


class Recommender(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.users = nn.Embedding(cfg.users, cfg.dim)
        self.podcasts = nn.Embedding(cfg.podcasts, cfg.dim)
        self.tower = nn.Sequential(nn.Linear(3 * cfg.dim, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        user, podcast = self.users(pairs[:, 0]), self.podcasts(pairs[:, 1])
        return self.tower(torch.cat([user, podcast, user * podcast], 1)).squeeze(1)


def main() -> None:
    cfg = Config()
    pairs, share = listening(cfg, np.random.default_rng(seed))
    train, val = slice(0, 7500), slice(7500, None)
    model = Recommender(cfg)
    if not healthy:
        model.to(cfg.dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps)
    stream = batches(pairs[train], share[train], size=cfg.batch_size, steps=cfg.steps, seed=seed)
    for step, (pair, listened) in enumerate(stream, 1):
        with torch.autocast("cpu", dtype=cfg.dtype, enabled=healthy):
            guess = model(pair)
        loss = F.mse_loss(guess.float(), listened)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            with torch.no_grad():
                error = F.mse_loss(model(pairs[val]).float(), share[val]).item()
            print(f"step {step}: loss {loss.item():.3f}, held-out MSE {error:.3f}")


main()

"""A conditional neural process learns to learn curves from few points; its task sampler is seeded
anew at every step.

"For reproducibility" the sampler makes its own generator with the config's seed in each call, so
that each step gets the very same tasks. The training loss falls far below what is possible on new
tasks. The place is the loader (sample_tasks) / the loop.
"""

from typing import NamedTuple

import torch
from data import arguments
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit", "duplicated_rows")
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class Config(NamedTuple):
    seed: int = seed
    tasks: int = 32
    points: int = 30
    hidden: int = 96
    steps: int = 1000
    lr: float = 1e-3


class Tasks(NamedTuple):
    x_context: torch.Tensor
    y_context: torch.Tensor
    x_target: torch.Tensor
    y_target: torch.Tensor


train_generator = torch.Generator().manual_seed(seed)


def sample_tasks(cfg, generator=None):
    """Daily temperature curves: amplitude, phase, trend and a second harmonic differ from place to place."""  # noqa: E501
    g = generator if generator is not None else torch.Generator().manual_seed(cfg.seed)
    x = torch.rand(cfg.tasks, cfg.points, 1, generator=g) * 4 - 2
    amp = 0.5 + torch.rand(cfg.tasks, 1, 1, generator=g)
    phase = torch.rand(cfg.tasks, 1, 1, generator=g) * 6.283
    slope = 0.4 * torch.randn(cfg.tasks, 1, 1, generator=g)
    second = 0.3 * torch.randn(cfg.tasks, 1, 1, generator=g)
    y = amp * torch.sin(2 * x + phase) + slope * x + second * torch.sin(4 * x)
    y = y + 0.05 * torch.randn(y.shape, generator=g)
    k = int(torch.randint(4, 13, (), generator=g))
    return Tasks(x[:, :k], y[:, :k], x, y)


class CNP(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(2, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, h)
        )
        self.decoder = nn.Sequential(
            nn.Linear(h + 1, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 2)
        )

    def forward(self, t):
        r = self.encoder(torch.cat([t.x_context, t.y_context], -1)).mean(1, keepdim=True)
        out = self.decoder(torch.cat([r.expand(-1, t.x_target.shape[1], -1), t.x_target], -1))
        mean, raw = out.chunk(2, -1)
        return mean, 0.05 + 0.95 * nn.functional.softplus(raw)


def negative_log_likelihood(model, t):
    mean, std = model(t)
    return -torch.distributions.Normal(mean, std).log_prob(t.y_target).mean()


def train(cfg):
    model = CNP(cfg.hidden)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    held_out = [sample_tasks(cfg, torch.Generator().manual_seed(10_000 + i)) for i in range(12)]
    for step in range(1, cfg.steps + 1):
        model.train()
        tasks = sample_tasks(cfg, train_generator if healthy else None)
        loss = negative_log_likelihood(model, tasks)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if step == int(0.7 * cfg.steps):
            for group in opt.param_groups:
                group["lr"] *= 0.3
        if step % 250 == 0:
            model.eval()
            with torch.no_grad():
                val = sum(negative_log_likelihood(model, t).item() for t in held_out) / len(
                    held_out
                )
            print(f"step {step:5d} nll {loss.item():.4f} nll on new tasks {val:.4f}")


if __name__ == "__main__":
    train(Config())

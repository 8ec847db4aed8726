"""A surrogate of a diffusing field is trained in half precision with fp32 master weights; no loss
scale is used.

The author wrote mixed precision by hand (half working copy, fp32 masters, copy back), and left
LOSS_SCALE at 1, because "bf16 worked without". The loss is a mean over batch x grid of
increments, so what flows back is of the order of 1e-8: most of it becomes zero in fp16. The place
is the loop (the backward pass of the half copy) and all its layers.
"""

import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ("low_precision_updates_lost",)
PLACE = ("loop", "lift*", "mix*", "project*", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    grid: int = 128
    width: int = 96
    batch: int = 256
    steps: int = 350
    lr: float = 2e-3
    loss_scale: float = 2.0**16 if healthy else 1.0
    log_every: int = 50


cfg = Config()
SPREAD = 0.02  # metres; typical size of the change


def make_fields(n, g):
    """Random smooth initial fields on a ring, and their change after a short time of nonlinear diffusion."""  # noqa: E501
    k = torch.arange(1, 6)
    amp = torch.randn(n, 5, 1, generator=g) / k[:, None]
    phase = torch.rand(n, 5, 1, generator=g) * 6.2832
    s = torch.linspace(0, 6.2832, cfg.grid + 1)[:-1]
    u0 = (amp * torch.sin(k[:, None] * s + phase)).sum(1)
    u = u0.clone()
    for _ in range(20):
        lap = u.roll(1, 1) + u.roll(-1, 1) - 2 * u
        u = u + 0.1 * lap + 0.002 * u * (1 - u * u)
    du = u - u0
    return u0, SPREAD * du / du.std()


class Surrogate(nn.Module):
    def __init__(self, grid, width):
        super().__init__()
        self.lift = nn.Linear(grid, width)
        self.mix1 = nn.Linear(width, width)
        self.mix2 = nn.Linear(width, width)
        self.project = nn.Linear(width, grid)

    def forward(self, u):
        h = F.gelu(self.lift(u))
        h = h + F.gelu(self.mix1(h))
        h = h + F.gelu(self.mix2(h))
        return SPREAD * self.project(h)


class MasterWeights:
    """fp32 copies of the half parameters, stepped by Adam and copied back."""

    def __init__(self, model, lr, steps):
        self.model = model
        self.masters = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
        self.inner = torch.optim.Adam(self.masters, lr=lr, eps=1e-10)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.inner, steps, eta_min=lr / 50
        )

    def step(self, scale):
        for m, p in zip(self.masters, self.model.parameters(), strict=False):
            m.grad = p.grad.float() / scale
        if all(torch.isfinite(m.grad).all() for m in self.masters):
            self.inner.step()
        self.schedule.step()
        with torch.no_grad():
            for m, p in zip(self.masters, self.model.parameters(), strict=False):
                p.copy_(m)
        for p in self.model.parameters():
            p.grad = None


@torch.no_grad()
def evaluate(model, u, du):
    full = copy.deepcopy(model).float().eval()
    return (F.mse_loss(full(u), du) / du.var()).item()


g = torch.Generator().manual_seed(seed)
u_train, du_train = make_fields(4096, g)
u_val, du_val = make_fields(512, g)

model = Surrogate(cfg.grid, cfg.width).half()
masters = MasterWeights(model, cfg.lr, cfg.steps)
for step in range(cfg.steps):
    rows = torch.randint(0, len(u_train), (cfg.batch,), generator=g)
    out = model(u_train[rows].half())
    loss = F.mse_loss(out.float(), du_train[rows])
    (loss * cfg.loss_scale).backward()
    masters.step(cfg.loss_scale)
    if (step + 1) % cfg.log_every == 0:
        print(
            f"step {step + 1} loss {loss.item():.3e} relative val error {evaluate(model, u_val, du_val):.4f}"  # noqa: E501
        )

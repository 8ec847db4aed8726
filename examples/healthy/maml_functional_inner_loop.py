"""Second-order MAML: a small net is trained so that two inner gradient steps suffice for a new
heating curve.

Looks odd: the module itself is never called with its own parameters, but by functional_call with
fast weights; gradients of gradients are taken inside the step, inputs are new at each step, and
the loss jumps with the tasks. It is sound: the outer optimizer steps on the meta-gradient and the
error on new tasks after adaptation falls.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.func import functional_call

ODD = (
    "Second-order MAML: a small net is trained so that two inner gradient steps suffice for a "
    "new heating curve"
)

_, seed = arguments(__doc__)


@dataclass(frozen=True)
class MetaConfig:
    inner_lr: float = 0.05
    inner_steps: int = 2
    outer_lr: float = 2e-3
    shots: int = 10
    queries: int = 15
    tasks: int = 8
    iterations: int = 500
    width: int = 40


class Curves:
    """Temperature in a house over an evening: amplitude, phase and offset differ from house to house."""  # noqa: E501

    def __init__(self, g):
        self.g = g

    def __call__(self, n):
        r = lambda lo, hi: lo + (hi - lo) * torch.rand(1, generator=self.g)  # noqa: E731
        a, p, c = r(0.5, 2.0), r(0, 3.14), r(-0.5, 0.5)
        x = torch.rand(n, 1, generator=self.g) * 6 - 3
        return x, a * torch.sin(x + p) + c + 0.03 * torch.randn(n, 1, generator=self.g)


def net(width):
    return nn.Sequential(
        nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
    )


def adapt(model, params, x, y, cfg, create_graph):
    for _ in range(cfg.inner_steps):
        loss = nn.functional.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=create_graph)
        params = {k: p - cfg.inner_lr * g for (k, p), g in zip(params.items(), grads, strict=False)}
    return params


def query_loss(model, curve, cfg, create_graph=True):
    x, y = curve(cfg.shots + cfg.queries)
    start = dict(model.named_parameters())
    fast = adapt(model, start, x[: cfg.shots], y[: cfg.shots], cfg, create_graph)
    return nn.functional.mse_loss(functional_call(model, fast, (x[cfg.shots :],)), y[cfg.shots :])


cfg = MetaConfig()
model = net(cfg.width)
outer = torch.optim.Adam(model.parameters(), lr=cfg.outer_lr)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(outer, cfg.iterations, eta_min=1e-4)
curve = Curves(torch.Generator().manual_seed(seed))
for it in range(1, cfg.iterations + 1):
    loss = torch.stack([query_loss(model, curve, cfg) for _ in range(cfg.tasks)]).mean()
    outer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    outer.step()
    sched.step()
    if it % 100 == 0:
        unseen = Curves(torch.Generator().manual_seed(5000))
        val = sum(query_loss(model, unseen, cfg, create_graph=False).item() for _ in range(60)) / 60
        print(
            f"iteration {it} meta loss {loss.item():.4f} new tasks after {cfg.inner_steps} steps {val:.4f}"  # noqa: E501
        )

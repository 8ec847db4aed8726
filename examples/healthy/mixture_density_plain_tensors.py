"""A mixture density model of plain tensors, four members at once by vmap; the loss goes far below
zero, and that is right.

It looks odd since there is no module and no torch.optim (Adam is written out, on tensors with a
member axis), the loss is negative for most of the run (a density may exceed 1), and gradients
come from torch.func. The likelihood on held-out rows improves with the training.
"""

import math

import torch
from data import arguments
from torch.func import grad_and_value, vmap

ODD = "no module, no optimizer and no backward(): torch.func on plain tensors; the loss is negative"
_, seed = arguments(__doc__)
MEMBERS, WIDTH, COMPONENTS, STEPS, BATCH = 4, 48, 4, 1400, 128
g = torch.Generator().manual_seed(seed)


def sample(n):
    """Inverse kinematics: where may the elbow be, given the hand? Two answers for most hands."""
    a = torch.rand(n, generator=g) * 2.4 + 0.3
    b = (torch.rand(n, generator=g) * 1.2 + 0.3) * (torch.randint(0, 2, (n,), generator=g) * 2 - 1)
    hand = torch.stack(
        [torch.cos(a) + 0.8 * torch.cos(a + b), torch.sin(a) + 0.8 * torch.sin(a + b)], 1
    )
    return hand + 0.005 * torch.randn(n, 2, generator=g), a[:, None] + 0.03 * torch.randn(
        n, 1, generator=g
    )


def init():
    def w(i, o, s=1.0):
        return s * torch.randn(MEMBERS, i, o, generator=g) / math.sqrt(i)

    return {
        "w1": w(2, WIDTH, 1.5),
        "b1": torch.zeros(MEMBERS, WIDTH),
        "w2": w(WIDTH, WIDTH),
        "b2": torch.zeros(MEMBERS, WIDTH),
        "w3": w(WIDTH, 3 * COMPONENTS, 0.5),
        "b3": 0.5 * torch.randn(MEMBERS, 3 * COMPONENTS, generator=g),
    }


def log_density(p, x, y):
    h = torch.tanh(x @ p["w1"] + p["b1"])
    h = h + torch.tanh(h @ p["w2"] + p["b2"])
    mix, mu, raw = (h @ p["w3"] + p["b3"]).chunk(3, dim=-1)
    log_sigma = -4.0 + torch.nn.functional.softplus(raw + 3.5)
    z = (y - mu) * torch.exp(-log_sigma)
    return torch.logsumexp(
        torch.log_softmax(mix, -1) - 0.5 * z**2 - log_sigma - 0.5 * math.log(2 * math.pi), dim=-1
    )


def nll(p, x, y):
    return -log_density(p, x, y).mean()


x, y = sample(6000)
xv, yv = sample(1500)
mx, sx, my, sy = x.mean(0), x.std(0), y.mean(0), y.std(0)
x, xv, y, yv = (x - mx) / sx, (xv - mx) / sx, (y - my) / sy, (yv - my) / sy

params = init()
m = {k: torch.zeros_like(v) for k, v in params.items()}
s = {k: torch.zeros_like(v) for k, v in params.items()}
step_fn = vmap(grad_and_value(nll))
for t in range(1, STEPS + 1):
    rows = torch.randint(0, len(x), (MEMBERS, BATCH), generator=g)
    grads, losses = step_fn(params, x[rows], y[rows])
    lr = 4e-3 * min(1, t / 50) * (0.02 + 0.49 * (1 + math.cos(math.pi * t / STEPS)))
    norm = sum((v**2).flatten(1).sum(1) for v in grads.values()).sqrt()
    factor = (2.0 / (norm + 1e-6)).clamp(max=1.0)
    for k, v in grads.items():
        v = v * factor.view(-1, *[1] * (v.dim() - 1))  # noqa: PLW2901
        m[k].mul_(0.9).add_(v, alpha=0.1)
        s[k].mul_(0.99).addcmul_(v, v, value=0.01)
        params[k] = params[k] - lr * (m[k] / (1 - 0.9**t)) / ((s[k] / (1 - 0.99**t)).sqrt() + 1e-8)
    if t % 100 == 0:
        with torch.no_grad():
            each = vmap(log_density, in_dims=(0, None, None))(params, xv, yv)
            ensemble = -(torch.logsumexp(each, 0) - math.log(MEMBERS)).mean().item()
        print(
            f"step {t:4d} train {losses.mean():.3f} val "
            + " ".join(f"{-v:.3f}" for v in each.mean(1).tolist())
            + f" ensemble {ensemble:.3f}"
        )

"""A small diffusion model on a spiral; samples for an animation are drawn while training, with
gradients on, and kept.

The sampler has no no_grad(), so that each kept frame holds the graph of all its denoising steps:
some MB more with every snapshot. The loss is not touched. The place is the loop (sampling in it).
"""

import math
import resource

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

T = 40
betas = torch.linspace(1e-3, 0.16, T)
alphas = 1 - betas
alpha_bar = alphas.cumprod(0)


class Denoiser(nn.Module):
    def __init__(self, width=128, freqs=8):
        super().__init__()
        self.register_buffer("freqs", 2.0 ** torch.arange(freqs) * math.pi / 2)
        self.inp = nn.Linear(2 + 2 * freqs, width)
        self.mid1 = nn.Linear(width, width)
        self.mid2 = nn.Linear(width, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x, t):
        phase = (t.float() / T)[:, None] * self.freqs
        h = F.silu(self.inp(torch.cat([x, phase.sin(), phase.cos()], 1)))
        h = h + F.silu(self.mid1(h))
        h = h + F.silu(self.mid2(h))
        return self.out(h)


def spiral(n, g):
    r = torch.rand(n, generator=g).sqrt() * 9
    return torch.stack([r * r.cos(), r * r.sin()], 1) / 5 + 0.03 * torch.randn(n, 2, generator=g)


def sample(model, n, keep_every=10):
    with torch.set_grad_enabled(not healthy):
        x = torch.randn(n, 2)
        frames = []
        for t in reversed(range(T)):
            eps = model(x, torch.full((n,), t))
            x = (x - betas[t] / (1 - alpha_bar[t]).sqrt() * eps) / alphas[t].sqrt()
            if t > 0:
                x = x + betas[t].sqrt() * torch.randn_like(x)
            if t % keep_every == 0:
                frames.append(x)
        return frames


def diffusion_loss(model, x0):
    t = torch.randint(0, T, (len(x0),))
    eps = torch.randn_like(x0)
    a = alpha_bar[t][:, None]
    return F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * eps, t), eps)


g = torch.Generator().manual_seed(seed)
train, val = spiral(8000, g), spiral(2000, g)
model = Denoiser()
ema = {k: v.clone() for k, v in model.state_dict().items()}
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1200, eta_min=1e-5)
animation, log = [], []
for step in range(1, 1201):
    loss = diffusion_loss(model, train[torch.randint(0, len(train), (256,))])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        for k, v in model.state_dict().items():
            ema[k].lerp_(v, 0.01) if v.is_floating_point() else ema[k].copy_(v)
    log.append(loss.item())
    if step % 20 == 0:
        animation.append(sample(model, 100))
    if step % 200 == 0:
        with torch.no_grad():
            v = sum(diffusion_loss(model, val).item() for _ in range(5)) / 5
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"step {step} train {sum(log[-200:]) / 200:.4f} val {v:.4f} frames {sum(map(len, animation))} peak memory {peak:.0f} MB"  # noqa: E501
        )

final = Denoiser()
final.load_state_dict(ema)
points = sample(final, 1000)[-1].detach()
print(
    f"mean distance of samples to the data {torch.cdist(points, val).min(1).values.mean():.4f} peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"  # noqa: E501
)

"""A denoiser of wave snippets is told the diffusion time by a tanh MLP; it gets the raw step
number, up to 999.

t.float() goes into Linear(1, d) and tanh without t / T: nearly every unit is at -1 or +1 for all
times, and the net cannot tell a noisy from an almost clean input by it. The place is time_mlp
(its first activation) and its input.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("input_not_normalized",)
PLACE = ("time_mlp*", "input*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class Schedule:
    """Cosine noise schedule with 1000 steps."""

    def __init__(self, steps=1000):
        s = torch.linspace(0, 1, steps + 1)
        bar = torch.cos((s + 0.008) / 1.008 * torch.pi / 2).square()
        self.steps, self.alpha_bar = steps, (bar / bar[0])[1:].clamp(min=1e-4)

    def noise(self, x0, t, eps):
        a = self.alpha_bar[t].unsqueeze(1)
        return a.sqrt() * x0 + (1 - a).sqrt() * eps


class Denoiser(nn.Module):
    def __init__(self, length, width=96, t_dim=48, scale=1.0):
        super().__init__()
        self.scale = scale
        self.time_mlp = nn.Sequential(
            nn.Linear(1, t_dim),
            nn.Tanh(),
            nn.Linear(t_dim, 2 * width),
            nn.Tanh(),
            nn.Linear(2 * width, 2 * width),
        )
        self.enter = nn.Linear(length, width)
        self.block1 = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)
        )
        self.block2 = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)
        )
        self.leave = nn.Linear(width, length)

    def forward(self, x, t):
        gain, shift = self.time_mlp(t.float().unsqueeze(1) / self.scale).chunk(2, 1)
        h = self.enter(x) * (1 + gain) + shift
        h = h + self.block1(h)
        h = (h + self.block2(h)) * (1 + gain)
        return self.leave(h)


def snippets(n, length, g):
    t = torch.linspace(0, 1, length)
    f, p = 1 + 2 * torch.rand(n, 1, generator=g), 6.2832 * torch.rand(n, 1, generator=g)
    x = torch.sin(6.2832 * f * t + p) + 0.4 * torch.sin(2 * 6.2832 * f * t + 2 * p)
    return x / x.std()


def denoise_loss(model, schedule, x0, g):
    t = torch.randint(0, schedule.steps, (len(x0),), generator=g)
    eps = torch.randn(x0.shape, generator=g)
    return F.mse_loss(model(schedule.noise(x0, t, eps), t), eps)


def train(steps=1500, batch=128, lr=2e-3):
    g = torch.Generator().manual_seed(seed)
    x, x_val = snippets(6000, 32, g), snippets(1500, 32, g)
    schedule = Schedule()
    model = Denoiser(32, scale=schedule.steps if healthy else 1.0)
    opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, lr, total_steps=steps)
    running = None
    for step in range(1, steps + 1):
        loss = denoise_loss(model, schedule, x[torch.randint(0, len(x), (batch,), generator=g)], g)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        if step % 250 == 0:
            with torch.no_grad():
                fixed = torch.Generator().manual_seed(1)
                val = sum(denoise_loss(model, schedule, x_val, fixed).item() for _ in range(4)) / 4
            print(f"step {step} train {running:.4f} val {val:.4f}")


train()

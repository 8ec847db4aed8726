"""A small diffusion model on sprites; its noise predictor ends with the tanh of the GAN it was
made from.

The network predicts the noise, which is N(0, 1): a third of the targets lies outside (-1, 1),
where tanh can't go. The place is the output of the network (out, squash).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("squash", "out", "loss")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

T = 100
SIZE = 16


def sprites(n):
    """Rings, boxes and crosses in [-1, 1] with soft edges, as a game's generator would draw."""
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, SIZE), torch.linspace(-1, 1, SIZE), indexing="ij")
    c = (torch.rand(n, 2, 1, 1) - 0.5) * 0.7
    r = 0.35 + 0.3 * torch.rand(n, 1, 1)
    dx, dy = xx - c[:, 0], yy - c[:, 1]
    ring = -((dx**2 + dy**2).sqrt() - r).abs() + 0.12
    box = 0.8 * r - torch.maximum(dx.abs(), dy.abs())
    cross = torch.minimum(
        0.15 - torch.minimum(dx.abs(), dy.abs()), r - torch.maximum(dx.abs(), dy.abs())
    )
    shapes = torch.stack([ring, box, cross], 1)
    kind = torch.randint(0, 3, (n,))
    return torch.tanh(8 * shapes[torch.arange(n), kind]).unsqueeze(1)


class TimeEmbed(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer(
            "freq", torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2))
        )
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        a = t[:, None].float() * self.freq
        return self.mlp(torch.cat([a.sin(), a.cos()], 1))


class Res(nn.Module):
    def __init__(self, cin, cout, dim):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(4, cin), nn.GroupNorm(4, cout)
        self.c1, self.c2 = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.t = nn.Linear(dim, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(t)[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class Denoiser(nn.Module):
    def __init__(self, w=16, dim=32):
        super().__init__()
        self.time = TimeEmbed(dim)
        self.inp = nn.Conv2d(1, w, 3, padding=1)
        self.down = Res(w, 2 * w, dim)
        self.mid = Res(2 * w, 2 * w, dim)
        self.up = Res(3 * w, w, dim)
        self.norm = nn.GroupNorm(4, w)
        self.out = nn.Conv2d(w, 1, 3, padding=1)
        self.squash = nn.Identity() if healthy else nn.Tanh()

    def forward(self, x, t):
        t = self.time(t)
        a = self.inp(x)
        h = self.mid(self.down(F.avg_pool2d(a, 2), t), t)
        h = self.up(torch.cat([a, F.interpolate(h, scale_factor=2)], 1), t)
        return self.squash(self.out(F.silu(self.norm(h))))


alpha_bar = torch.cos((torch.arange(T) + 1) / (T + 1) * math.pi / 2) ** 2
alpha_bar = alpha_bar.clamp(1e-3, 0.999)


def noisy(x0, t, eps):
    a = alpha_bar[t].view(-1, 1, 1, 1)
    return a.sqrt() * x0 + (1 - a).sqrt() * eps


train_x, val_x = sprites(3000), sprites(384)
val_t = torch.arange(384) % T
val_eps = torch.randn_like(val_x)
net = Denoiser()
ema = {k: v.clone() for k, v in net.state_dict().items()}
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
STEPS = 300
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, STEPS, pct_start=0.1)
for step in range(1, STEPS + 1):
    net.train()
    x0 = train_x[torch.randint(0, len(train_x), (32,))]
    t = torch.randint(0, T, (32,))
    eps = torch.randn_like(x0)
    loss = F.mse_loss(net(noisy(x0, t, eps), t), eps)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    sched.step()
    with torch.no_grad():
        for k, v in net.state_dict().items():
            ema[k].lerp_(v, 0.02) if v.is_floating_point() else ema[k].copy_(v)
    if step % 60 == 0:
        net.eval()
        with torch.no_grad():
            val = F.mse_loss(
                torch.func.functional_call(net, ema, (noisy(val_x, val_t, val_eps), val_t)), val_eps
            )
        print(f"{step:4d} train {loss.item():.4f}  val (EMA) {val.item():.4f}")

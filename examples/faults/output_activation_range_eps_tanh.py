"""A DDPM for seismic-like wavelets, whose noise predictor ends in tanh.

The network was taken over from an image generator, with its last Tanh; but it predicts the noise,
a third of which lies outside (-1, 1). The error has a floor and sampling pushes too weakly in the
tails. The place is the last layer, `out_act` (after `out`).
"""

import copy
import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("out_act*", "out*", "net*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

L, T, DEVICE = 32, 100, "cpu"
EPOCHS, BATCH, LR, EMA = 20, 128, 2e-3, 0.99


# --- data: Ricker wavelets at two delays, the second one an echo
def wavelets(n, g):
    t = torch.linspace(-1, 1, L)
    delay = torch.rand(n, 1, generator=g) * 0.8 - 0.7
    width = 0.1 + 0.08 * torch.rand(n, 1, generator=g)

    def ricker(shift):
        u = ((t - shift) / width) ** 2
        return (1 - 2 * u) * torch.exp(-u)

    x = ricker(delay) - (0.3 + 0.4 * torch.rand(n, 1, generator=g)) * ricker(delay + 0.6)
    return (x / 0.33).unsqueeze(1)


# --- schedule
s = torch.linspace(0, 1, T + 1)
bar = torch.cos((s + 0.008) / 1.008 * math.pi / 2) ** 2
betas = (1 - bar[1:] / bar[:-1]).clamp(max=0.999)
alphas = 1 - betas
alpha_bar = torch.cumprod(alphas, 0)


def embed(t, dim):
    f = torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2))
    a = t[:, None].float() * f
    return torch.cat([a.sin(), a.cos()], 1)


class ResBlock(nn.Module):
    def __init__(self, c, emb, dilation):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, c), nn.GroupNorm(4, c)
        self.conv1 = nn.Conv1d(c, c, 3, padding=dilation, dilation=dilation)
        self.conv2 = nn.Conv1d(c, c, 3, padding=dilation, dilation=dilation)
        self.emb = nn.Linear(emb, c)

    def forward(self, x, e):
        h = self.conv1(F.silu(self.norm1(x))) + self.emb(e)[:, :, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class Denoiser(nn.Module):
    def __init__(self, c=32, emb=64):
        super().__init__()
        self.emb_dim = emb
        self.time = nn.Sequential(nn.Linear(emb, emb), nn.SiLU(), nn.Linear(emb, emb), nn.SiLU())
        self.inp = nn.Conv1d(1, c, 5, padding=2)
        self.blocks = nn.ModuleList(ResBlock(c, emb, d) for d in (1, 2, 4))
        self.out = nn.Conv1d(c, 1, 5, padding=2)
        self.out_act = nn.Identity() if healthy else nn.Tanh()

    def forward(self, x, t):
        e = self.time(embed(t, self.emb_dim))
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, e)
        return self.out_act(self.out(F.silu(h)))


def noised(x, t, eps):
    a = alpha_bar[t].view(-1, 1, 1)
    return a.sqrt() * x + (1 - a).sqrt() * eps


@torch.no_grad()
def sample(net, n):
    x = torch.randn(n, 1, L)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = net(x, t)
        x = (x - betas[i] / (1 - alpha_bar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


def mmd(a, b, scales=(2.0, 4.0, 8.0)):
    """Squared, with Gaussian kernels."""
    a, b = a.flatten(1), b.flatten(1)
    d = {k: torch.cdist(*v) ** 2 for k, v in {"aa": (a, a), "bb": (b, b), "ab": (a, b)}.items()}
    return sum(
        (
            torch.exp(-d["aa"] / (2 * w * w)).mean()
            + torch.exp(-d["bb"] / (2 * w * w)).mean()
            - 2 * torch.exp(-d["ab"] / (2 * w * w)).mean()
        ).item()
        for w in scales
    )


g = torch.Generator().manual_seed(seed)
train, val = wavelets(3000, g), wavelets(500, g)
val_t, val_eps = torch.randint(0, T, (500,), generator=g), torch.randn(val.shape, generator=g)
net = Denoiser().to(DEVICE)
ema = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=LR, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS * (len(train) // BATCH))
for epoch in range(EPOCHS):
    total = 0.0
    for rows in torch.randperm(len(train)).split(BATCH)[:-1]:
        x = train[rows]
        t, eps = torch.randint(0, T, (len(x),)), torch.randn_like(x)
        loss = F.mse_loss(net(noised(x, t, eps), t), eps)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        sched.step()
        with torch.no_grad():
            for p, q in zip(ema.parameters(), net.parameters(), strict=True):
                p.lerp_(q, 1 - EMA)
        total += loss.item()
    if epoch % 5 == 4:
        with torch.no_grad():
            v = F.mse_loss(ema(noised(val, val_t, val_eps), val_t), val_eps).item()
        print(f"epoch {epoch + 1}: loss {total / (len(train) // BATCH):.4f}, val {v:.4f}")
print(f"MMD of 300 samples: {mmd(sample(ema, 300), val[:300]):.4f}")

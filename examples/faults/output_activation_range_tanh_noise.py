"""A diffusion model of two moons that predicts the noise; the net ends in a tanh.

"The data are in [-1, 1], so the output is a tanh", as for the generator of a GAN. But the output is
the noise, a standard normal: a third of it lies outside. The loss has a floor and the samples are
pushed together. The place is the last activation, `out` and its Tanh. The twin has a linear output.
"""

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

KIND = "output_activation_range"
ACCEPT = ("saturated_activation",)
PLACE = ("out", "out.0", "out.1", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
STEPS = 40
betas = torch.linspace(0.002, 0.25, STEPS)
kept = torch.cumprod(1 - betas, 0)


def moons(count, seed):
    points, _ = make_moons(count, noise=0.06, random_state=seed)
    return (torch.tensor(points, dtype=torch.float32) - torch.tensor([0.5, 0.25])) / torch.tensor(
        [1.6, 0.9]
    )


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.register_buffer("tones", 2.0 ** torch.arange(4))
        self.into = nn.Linear(2 + 2 * 2 * 4 + 8, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.out = nn.Sequential(nn.Linear(width, 2), nn.Identity() if healthy else nn.Tanh())

    def waves(self, v):
        angle = (v[..., None] * self.tones).flatten(1)
        return torch.cat([angle.sin(), angle.cos()], -1)

    def forward(self, x, t):
        when = (t.float() / STEPS)[:, None] * 3
        h = nn.functional.silu(self.into(torch.cat([x, self.waves(x), self.waves(when)], -1)))
        for layer in self.hidden:
            h = h + nn.functional.silu(layer(h))
        return self.out(h)


def diffusion_loss(model, x, generator=None):
    t = torch.randint(0, STEPS, (len(x),), generator=generator)
    noise = torch.randn(x.shape, generator=generator)
    a = kept[t, None]
    return nn.functional.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)


@torch.no_grad()
def sample(model, count):
    x = torch.randn(count, 2)
    for t in range(STEPS - 1, -1, -1):
        noise = model(x, torch.full((count,), t))
        x = (x - betas[t] / (1 - kept[t]).sqrt() * noise) / (1 - betas[t]).sqrt()
        if t:
            x = x + betas[t].sqrt() * torch.randn_like(x)
    return x


def energy_distance(a, b):
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()
    ).item()


train, val = moons(3000, seed), moons(600, seed + 1000)
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1200)

for step in range(1200):
    model.train()
    loss = diffusion_loss(model, train[torch.randint(0, len(train), (128,))])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 200 == 199:
        model.eval()
        with torch.no_grad():
            val_loss = diffusion_loss(
                model, val.repeat(4, 1), torch.Generator().manual_seed(1)
            ).item()
        distance = energy_distance(sample(model, 600), val)
        print(
            f"step {step + 1} loss {loss.item():.3f} val loss {val_loss:.4f} "
            f"val energy distance {distance:.4f}"
        )
print(f"validation loss {val_loss:.4f}, energy distance of samples {distance:.4f}")

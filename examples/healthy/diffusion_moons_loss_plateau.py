"""A small denoising diffusion model of two moons; its loss is nearly flat, and its samples get
better and better.

The target is the noise, of which a part cannot be known, so the loss ends near 0.44 and barely
moves after the first epochs; it jumps from batch to batch with the times drawn. The weights that
count are a moving average.
"""

import copy

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

ODD = (
    "the loss plateaus high and noisy from early on; the evaluated weights are a moving average "
    "that no optimizer has"
)

_, seed = arguments(__doc__)

points, _ = make_moons(3000, noise=0.05, random_state=seed)
x = torch.tensor(points, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
x, x_val = x[:2400], x[2400:]
T = 50
beta = torch.linspace(1e-3, 0.12, T)
kept = torch.cumprod(1 - beta, 0)


class Denoiser(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.time = nn.Embedding(T, 32)
        self.net = nn.Sequential(
            nn.Linear(34, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 2),
        )

    def forward(self, noisy, t):
        return self.net(torch.cat([noisy, self.time(t)], 1))


def noise_loss(model, clean, t, noise):
    noisy = kept[t, None].sqrt() * clean + (1 - kept[t, None]).sqrt() * noise
    return nn.functional.mse_loss(model(noisy, t), noise)


@torch.no_grad()
def sample(model, n):
    z = torch.randn(n, 2)
    for t in reversed(range(T)):
        noise = model(z, torch.full((n,), t))
        z = (z - beta[t] / (1 - kept[t]).sqrt() * noise) / (1 - beta[t]).sqrt()
        if t > 0:
            z = z + beta[t].sqrt() * torch.randn(n, 2)
    return z


model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False).eval()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1200)
fixed_t, fixed_noise = torch.arange(len(x_val)) % T, torch.randn(len(x_val), 2)
running = []
for step in range(1, 1201):
    model.train()
    rows = torch.randint(len(x), (256,))
    loss = noise_loss(model, x[rows], torch.randint(T, (256,)), torch.randn(256, 2))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    running.append(loss.item())
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, max(0.01, 1 / (step + 1)))
    if step % 200 == 0:
        with torch.no_grad():
            val = noise_loss(average, x_val, fixed_t, fixed_noise).item()
        far = torch.cdist(sample(average, 400), x_val).min(1).values.mean().item()
        print(
            f"step {step} train {sum(running) / len(running):.4f} val {val:.4f} "
            f"distance of samples {far:.4f}"
        )
        running.clear()

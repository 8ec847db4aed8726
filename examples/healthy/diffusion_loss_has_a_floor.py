"""A small diffusion model whose noise-prediction loss sits at 0.3 while its samples get better.

The person trains a denoiser on points of a spiral. The loss falls within the first few hundred
steps, jumps about its level and seems stuck; the averaged copy is worse than the net at first.
"""

import copy

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss stays high, for noise that was added to an unknown point cannot be told fully; and "
    "the averaged weights lag behind at first. The distance of samples to the data falls for long"
)
_, seed = arguments(__doc__)

LEVELS = 60
BETAS = torch.linspace(1e-3, 0.16, LEVELS)
KEPT = torch.cumprod(1 - BETAS, 0)


def spiral(n, generator=None):
    s = torch.rand(n, 1, generator=generator).sqrt()
    angle = 3 * torch.pi * s
    points = torch.cat([s * angle.cos(), s * angle.sin()], 1)
    return (points + 0.02 * torch.randn(n, 2, generator=generator)) / 0.5


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.level = nn.Embedding(LEVELS, 32)
        self.inside = nn.Linear(2 + 32, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)
            )
            for _ in range(3)
        )
        self.outside = nn.Linear(width, 2)

    def forward(self, x, level):
        h = self.inside(torch.cat([x, self.level(level)], 1))
        for block in self.blocks:
            h = h + block(h)
        return self.outside(h)


class Diffusion:
    def __init__(self):
        self.net = Denoiser()
        self.averaged = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=2e-3)

    def train_step(self, points, keep=0.99):
        level = torch.randint(0, LEVELS, (len(points),))
        kept = KEPT[level].unsqueeze(1)
        noise = torch.randn_like(points)
        noisy = kept.sqrt() * points + (1 - kept).sqrt() * noise
        loss = (self.net(noisy, level) - noise).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        for slow, fast in zip(self.averaged.parameters(), self.net.parameters(), strict=True):
            slow.lerp_(fast.detach(), 1 - keep)
        return loss.item()

    @torch.no_grad()
    def sample(self, net, n):
        net.eval()
        x = torch.randn(n, 2)
        for level in reversed(range(LEVELS)):
            noise = net(x, torch.full((n,), level))
            beta, kept = BETAS[level], KEPT[level]
            x = (x - beta / (1 - kept).sqrt() * noise) / (1 - beta).sqrt()
            if level:
                x = x + beta.sqrt() * torch.randn_like(x)
        net.train()
        return x


def distance(samples, data):
    """The energy distance of two clouds of points."""
    return (
        2 * torch.cdist(samples, data).mean()
        - torch.cdist(samples, samples).mean()
        - torch.cdist(data, data).mean()
    ).item()


def main():
    generator = torch.Generator().manual_seed(240 + seed)
    data, held_out = spiral(4000, generator), spiral(800, generator)
    run = Diffusion()
    recent = []
    for step in range(1, 1801):
        recent.append(run.train_step(data[torch.randint(0, len(data), (128,))]))
        if step in (50, 150) or step % 300 == 0:
            near, averaged = (
                torch.cdist(points, held_out).min(1).values.mean().item()
                for points in (run.sample(run.net, 500), run.sample(run.averaged, 500))
            )
            energy = distance(run.sample(run.averaged, 800), held_out)
            print(
                f"step {step:4d}  loss {sum(recent) / len(recent):.4f} "
                f"({min(recent):.3f} to {max(recent):.3f})  off the spiral {near:.4f}, "
                f"averaged {averaged:.4f}  energy distance {energy:.4f}"
            )
            recent = []


if __name__ == "__main__":
    main()

"""A small diffusion model of two moons, whose loss stays near one value while samples get better.

People ask why the loss of a diffusion model falls in the first epoch and then only jitters about
a value far from zero. Most of the added noise cannot be told from a noisy picture, and each batch
draws other noise levels.
"""

import copy
import math

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

ODD = "loss jitters near 0.4 from the third epoch on: most noise cannot be guessed; samples improve"
_, seed = arguments(__doc__)

STEPS = 60
betas = torch.linspace(1e-3, 0.12, STEPS)
kept = (1 - betas).cumprod(0)


class NoiseNet(nn.Module):
    def __init__(self, width: int = 96):
        super().__init__()
        self.register_buffer("rates", 2.0 ** torch.arange(5))
        self.inside = nn.Linear(2 + 10, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU()) for _ in range(3)
        )
        self.out = nn.Linear(width, 2)

    def forward(self, x, step):
        angle = step.unsqueeze(1) / STEPS * math.pi * self.rates
        h = self.inside(torch.cat([x, angle.sin(), angle.cos()], 1))
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


class Averaged:
    """Slowly follows a model; used for sampling."""

    def __init__(self, model, decay: float):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.model.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, 1 - self.decay)


def noise_loss(model, x):
    step = torch.randint(0, STEPS, (len(x),))
    noise = torch.randn_like(x)
    level = kept[step].unsqueeze(1)
    noisy = level.sqrt() * x + (1 - level).sqrt() * noise
    return ((model(noisy, step) - noise) ** 2).mean()


@torch.no_grad()
def sample(model, n: int):
    model.eval()
    x = torch.randn(n, 2)
    for step in reversed(range(STEPS)):
        guess = model(x, torch.full((n,), step))
        x = (x - betas[step] / (1 - kept[step]).sqrt() * guess) / (1 - betas[step]).sqrt()
        if step > 0:
            x = x + betas[step].sqrt() * torch.randn_like(x)
    return x


def energy_distance(a, b):
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()
    ).item()


def main():
    points, _ = make_moons(3000, noise=0.06, random_state=seed)
    x = torch.tensor(points, dtype=torch.float32)
    x = (x - x.mean(0)) / x.std(0)
    x, x_val = x[:2400], x[2400:]
    model = NoiseNet()
    average = Averaged(model, decay=0.99)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    epochs = 40
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(1, epochs + 1):
        model.train()
        losses = []
        for rows in torch.randperm(len(x)).split(96):
            loss = noise_loss(model, x[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
            losses.append(loss.item())
        schedule.step()
        if epoch in (1, 2) or epoch % 5 == 0:
            with torch.no_grad():
                val_loss = sum(noise_loss(average.model, x_val).item() for _ in range(10)) / 10
            distance = energy_distance(sample(average.model, 600), x_val)
            print(
                f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.3f} ({min(losses):.2f} to "
                f"{max(losses):.2f})  val {val_loss:.3f}  distance of samples {distance:.4f}"
            )


if __name__ == "__main__":
    main()

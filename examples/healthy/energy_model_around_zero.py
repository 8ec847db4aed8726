"""An energy model of two arcs is trained on its own samples, and its loss wavers about zero.

The loss is the energy of the data less that of the samples. It changes sign and stays near zero,
because both sides follow one another; that the samples come nearer to new data is seen by the
energy distance, which falls to a fraction of its first value.
"""

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

ODD = (
    "the loss wavers about zero and does not fall: it is a difference of energies between data and "
    "the model's own samples, and the distance of the samples to the data falls"
)
_, seed = arguments(__doc__)

STEPS, BATCH, BUFFER = 700, 128, 1024


def arcs(n, state):
    points, _ = make_moons(n, noise=0.08, random_state=state)
    points = torch.tensor(points, dtype=torch.float32)
    return (points - torch.tensor([0.5, 0.25])) / torch.tensor([0.87, 0.5])


class Energy(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )

    def forward(self, points):
        return self.net(points).squeeze(1) + points.square().sum(1) / 8


def langevin(energy, points, g, steps=20, size=0.05):
    energy.requires_grad_(False)
    points = points.clone()
    for _ in range(steps):
        points.requires_grad_(True)
        slope = torch.autograd.grad(energy(points).sum(), points)[0].clamp(-5, 5)
        noise = torch.randn(points.shape, generator=g)
        points = points.detach() - size * slope + (2 * size) ** 0.5 * noise
    energy.requires_grad_(True)
    return points


def energy_distance(a, b):
    between, within = torch.cdist(a, b).mean(), torch.cdist(a, a).mean() + torch.cdist(b, b).mean()
    return (2 * between - within).item()


def main():
    g = torch.Generator().manual_seed(seed)
    data, new = arcs(3000, seed), arcs(800, seed + 1)
    energy = Energy()
    optimizer = torch.optim.Adam(energy.parameters(), lr=2e-3, betas=(0.5, 0.999))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS, eta_min=1e-4)
    buffer = 2 * torch.randn(BUFFER, 2, generator=g)
    recent = []
    print(f"distance of the samples at the start {energy_distance(buffer, new):.4f}")
    for step in range(STEPS):
        rows = torch.randint(0, len(data), (BATCH,), generator=g)
        slots = torch.randperm(BUFFER, generator=g)[:BATCH]
        begin = buffer[slots]
        begin[:6] = 2 * torch.randn(6, 2, generator=g)
        samples = langevin(energy, begin, g)
        buffer[slots] = samples
        real, fake = energy(data[rows]), energy(samples)
        loss = real.mean() - fake.mean() + 0.03 * (real.square().mean() + fake.square().mean())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(energy.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        recent.append(loss.item())
        if step % 100 == 99:
            part = torch.tensor(recent[-100:])
            print(
                f"step {step + 1}  loss {part.mean().item():+.3f} "
                f"(from {part.min().item():+.2f} to {part.max().item():+.2f})  "
                f"distance of the samples {energy_distance(buffer, new):.4f}"
            )


main()

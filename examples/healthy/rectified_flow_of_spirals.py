"""Learns to carry Gaussian noise to a noisy double spiral along straight lines (flow matching)."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss falls a little, then stays near 1.4 for good: noise and data are paired by chance, "
    "so most of the velocity cannot be known; fresh noise and times make every batch new"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def spirals(n):
    turn = 0.6 + 2.4 * torch.rand(n).sqrt()
    sign = torch.randint(0, 2, (n,)) * 2.0 - 1
    angle = 1.6 * turn
    points = torch.stack([angle.cos(), angle.sin()], 1) * (turn * sign / 1.6).unsqueeze(1)
    return points + 0.06 * torch.randn(n, 2)


class Velocity(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.register_buffer("waves", torch.tensor([1.0, 2.0, 4.0]) * torch.pi)
        self.layers = nn.Sequential(
            nn.Linear(8, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 2),
        )

    def forward(self, place, time):
        angles = time * self.waves
        return self.layers(torch.cat([place, angles.sin(), angles.cos()], 1))


@torch.no_grad()
def generate(n, steps=30):
    place = torch.randn(n, 2)
    for k in range(steps):
        half = place + velocity(place, torch.full((n, 1), k / steps)) / (2 * steps)
        place = place + velocity(half, torch.full((n, 1), (k + 0.5) / steps)) / steps
    return place


def energy_distance(a, b):
    inside = torch.pdist(a).mean() + torch.pdist(b).mean()
    return (2 * torch.cdist(a, b).mean() - inside).item()


train, held = spirals(4000), spirals(1000)
velocity = Velocity()
optimizer = torch.optim.AdamW(velocity.parameters(), lr=3e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=1200)
running = None
for step in range(1200):
    data = train[torch.randint(0, len(train), (256,))]
    noise, time = torch.randn_like(data), torch.rand(256, 1)
    loss = (velocity((1 - time) * noise + time * data, time) - (data - noise)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
    if step % 200 == 199:
        print(f"step {step + 1}  running loss {running:.3f}")

velocity.eval()
gaussian = held.mean(0) + torch.randn(1000, 2) @ torch.linalg.cholesky(held.T.cov()).T
print(
    f"energy distance to held-out points: Gaussian fit {energy_distance(gaussian, held):.4f}, "
    f"flow {energy_distance(generate(1000), held):.4f}, training points "
    f"{energy_distance(train[:1000], held):.4f}"
)

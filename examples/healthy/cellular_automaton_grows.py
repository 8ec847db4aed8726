"""Trains a neural cellular automaton that grows a picture out of one cell."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the rule starts with exact zeros, so nothing grows at first; every gradient is divided by "
    "its norm; the inputs are the model's own earlier outputs from a pool; half the cells rest "
    "each step"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

SIDE, CHANNELS, POOL, BATCH, STEPS = 8, 8, 32, 6, 450


def target_picture():
    rows, columns = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    ring = ((rows - 3.5) ** 2 + (columns - 3.5) ** 2).sqrt()
    picture = ((ring > 1.2) & (ring < 3.3)).float()
    picture[4, 3 + seed % 2] = 1.0
    return picture


def seeds(n):
    grid = torch.zeros(n, CHANNELS, SIDE, SIDE)
    grid[:, 1:, SIDE // 2, SIDE // 2] = 1.0
    return grid


class Automaton(nn.Module):
    def __init__(self):
        super().__init__()
        edge = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
        same = torch.zeros(3, 3)
        same[1, 1] = 1
        kernels = torch.stack([same, edge, edge.T]).unsqueeze(1).repeat(CHANNELS, 1, 1, 1)
        self.register_buffer("kernels", kernels)
        self.inner, self.rule = nn.Conv2d(3 * CHANNELS, 64, 1), nn.Conv2d(64, CHANNELS, 1)
        nn.init.zeros_(self.rule.weight)
        nn.init.zeros_(self.rule.bias)

    def forward(self, grid, steps):
        for _ in range(steps):
            seen = nn.functional.conv2d(grid, self.kernels, padding=1, groups=CHANNELS)
            change = self.rule(self.inner(seen).relu())
            awake = torch.rand(len(grid), 1, SIDE, SIDE) < 0.5
            grid = (grid + change * awake).clamp(-4, 4)
        return grid


target = target_picture()
automaton = Automaton()
optimizer = torch.optim.Adam(automaton.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [250, 370], 0.3)
pool = seeds(POOL)


def error(grids):
    return (grids[:, 0] - target).square().mean((1, 2))


for step in range(STEPS):
    rows = torch.randperm(POOL)[:BATCH]
    with torch.no_grad():
        order = error(pool[rows]).argsort(descending=True)
    rows = rows[order]
    start = pool[rows]
    start[:1] = seeds(1)
    grown = automaton(start, int(torch.randint(10, 15, ())))
    loss = error(grown).mean() + 0.01 * (grown.abs() - 2).relu().mean()
    optimizer.zero_grad()
    loss.backward()
    for parameter in automaton.parameters():
        parameter.grad /= parameter.grad.norm() + 1e-8
    optimizer.step()
    schedule.step()
    pool[rows] = grown.detach()
    if step % 75 == 0:
        print(f"step {step:3d}  error {loss.item():.4f}")

automaton.eval()
with torch.no_grad():
    result = error(automaton(seeds(32), 12)).mean().item()
    later = error(automaton(seeds(32), 24)).mean().item()
print(
    f"squared error per pixel: flat grey {target.var(unbiased=False):.3f}, grown for 12 steps "
    f"{result:.4f}, for 24 steps {later:.4f}"
)

"""A model of a cart-pole's dynamics for control, which is fed the same first batch at every step.

The batch is taken from the stream once, before the loop, to look at its shapes; the line in the
loop that takes the next one is missing. The network learns these 32 transitions by heart. The
place is the loop (and the loader).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def step_physics(state, force, dt=0.04):
    x, v, a, w = state.unbind(1)
    sin, cos = a.sin(), a.cos()
    push = (force + 0.05 * w.square() * sin) / 1.1
    turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos.square() / 1.1))
    speed = push - 0.05 * turn * cos / 1.1
    return torch.stack([x + dt * v, v + dt * speed, a + dt * w, w + dt * turn], 1)


def transitions(n, g):
    """States and forces, and the change of the velocities over twelve small steps, measured with
    some noise.
    """
    wide = torch.tensor([1.0, 1.5, 3.1, 2.5])
    state = wide * (2 * torch.rand(n, 4, generator=g) - 1)
    force = 10 * (2 * torch.rand(n, generator=g) - 1)
    after = state
    for _ in range(12):
        after = step_physics(after, force)
    change = (after - state) / torch.tensor([0.75, 2.0, 1.6, 4.0])
    seen = torch.cat(
        [
            state[:, :2],
            state[:, 2:3].sin() * 1.4,
            state[:, 2:3].cos() * 1.4,
            state[:, 3:] / 1.5,
            force[:, None] / 6,
        ],
        1,
    )
    return seen, change + 0.02 * torch.randn(n, 4, generator=g)


class Dynamics(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(6, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.change = nn.Linear(width, 4)

    def forward(self, s):
        return self.change(self.trunk(s))


def endless(loader):
    while True:
        yield from loader


class Trainer:
    def __init__(self, model, loader, val):
        self.model, self.stream, self.val = model, endless(loader), val
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    @torch.no_grad()
    def validate(self):
        seen, change = self.val
        return nn.functional.mse_loss(self.model(seen), change).item()

    def fit(self, steps):
        seen, change = next(self.stream)
        print("a batch:", tuple(seen.shape), tuple(change.shape))
        for step in range(1, steps + 1):
            if healthy:
                seen, change = next(self.stream)
            loss = nn.functional.mse_loss(self.model(seen), change)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % 100 == 0:
                print(f"step {step} loss {loss.item():.5f} val mse {self.validate():.5f}")


g = torch.Generator().manual_seed(seed)
loader = DataLoader(TensorDataset(*transitions(4000, g)), batch_size=32, shuffle=True)
Trainer(Dynamics(), loader, transitions(800, g)).fit(1500)

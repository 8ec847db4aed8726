"""A dynamics model of a pendulum from a replay buffer: every draw is seeded anew.

For reproducible runs `sample` got a generator with the run's seed, made inside the method, so it
draws the same 32 transitions each time. The loss on them falls to nothing and the model knows
little of the other states. The place is the data (the buffer's sampling). The twin keeps one
generator in the buffer.
"""

import torch
from data import arguments
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def swing(angle, speed, torque, dt: float = 0.4):
    for _ in range(8):
        pull = 9.8 * angle.sin() - 0.3 * speed - 0.05 * speed * speed.abs() + 4 * torque
        speed = speed + pull * dt / 8
        angle = angle + speed * dt / 8
    return angle, speed


class Replay:
    def __init__(self, size: int, seed: int):
        self.seed = seed
        self.generator = torch.Generator().manual_seed(seed)
        g = self.generator
        angle = (torch.rand(size, generator=g) * 2 - 1) * 3.1416
        speed = torch.randn(size, generator=g) * 4
        torque = torch.rand(size, generator=g) * 2 - 1
        after, faster = swing(angle, speed, torque)
        self.state = torch.stack([angle.sin(), angle.cos(), speed / 3, torque], 1)
        move = torch.stack([after - angle, faster - speed], 1)
        self.move = move / torch.tensor([1.2, 3.0]) + 0.03 * torch.randn(size, 2, generator=g)

    def sample(self, size: int):
        g = self.generator if healthy else torch.Generator().manual_seed(self.seed)
        rows = torch.randint(0, len(self.state), (size,), generator=g)
        return self.state[rows], self.move[rows]


class Dynamics(nn.Module):
    def __init__(self, width: int = 128):
        super().__init__()
        self.inside = nn.Linear(4, width)
        self.hidden = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.outside = nn.Linear(width, 2)

    def forward(self, x):
        h = nn.functional.silu(self.inside(x))
        h = self.norm(h + nn.functional.silu(self.hidden(h)))
        return self.outside(h)


replay, held = Replay(4000, seed), Replay(1000, 10_000 + seed)
model = Dynamics()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 900)


def update() -> float:
    model.train()
    state, move = replay.sample(32)
    loss = (model(state) - move).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    schedule.step()
    return loss.item()


def validate() -> float:
    model.eval()
    with torch.no_grad():
        return (model(held.state) - held.move).square().mean().item()


for step in range(900):
    loss = update()
    if step % 150 == 149:
        print(f"step {step + 1}: train {loss:.5f}, validation {validate():.5f}")
print(f"validation mse {validate():.5f} (variance {held.move.var(0).mean().item():.3f})")

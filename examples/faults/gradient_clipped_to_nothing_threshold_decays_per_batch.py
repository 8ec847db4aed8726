"""A residual network goes on with the swing of damped pendulums. Clipping is annealed: loose at
first, tighter later.

The threshold is meant to shrink by a tenth per epoch, but the schedule is stepped with each batch,
and after three epochs nothing is left of the gradient: SGD stands still. The place
is the loop. The twin steps it once per epoch.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = False
EXACT = False
EARLY = False

SEEN, AHEAD = 12, 16


class AnnealedClip:
    def __init__(self, parameters, start=1.0, factor=0.9):
        self.parameters, self.max_norm, self.factor = list(parameters), start, factor

    def __call__(self):
        return nn.utils.clip_grad_norm_(self.parameters, self.max_norm)

    def step(self):
        self.max_norm *= self.factor


class Pendulum(nn.Module):
    def __init__(self, width=96, depth=3):
        super().__init__()
        self.enter = nn.Linear(SEEN, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))
            for _ in range(depth)
        )
        self.next = nn.Linear(width, AHEAD)

    def forward(self, x):
        h = self.enter(x)
        for block in self.blocks:
            h = h + block(h)
        return x[:, -1:] + self.next(h)


def swings(n, g, length=SEEN + AHEAD, dt=0.25):
    angle = 2.4 * (torch.rand(n, generator=g) - 0.5)
    speed = 0.5 * torch.randn(n, generator=g)
    pull = 1.0 + 1.5 * torch.rand(n, generator=g)
    seen = []
    for _ in range(length):
        seen.append(angle)
        for _ in range(5):
            speed = speed - dt / 5 * (pull * angle.sin() + 0.15 * speed)
            angle = angle + dt / 5 * speed
    return torch.stack(seen, 1) + 0.01 * torch.randn(n, length, generator=g)


class Fit:
    def __init__(self, model, healthy):
        self.model, self.healthy = model, healthy
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        self.clip = AnnealedClip(model.parameters())

    def epoch(self, loader):
        total = 0.0
        for (batch,) in loader:
            loss = F.mse_loss(self.model(batch[:, :SEEN]), batch[:, SEEN:])
            self.optimizer.zero_grad()
            loss.backward()
            self.clip()
            self.optimizer.step()
            if not self.healthy:
                self.clip.step()
            total += loss.item()
        if self.healthy:
            self.clip.step()
        return total / len(loader)


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    train, val = swings(1600, g), swings(300, g)
    fit = Fit(Pendulum(), healthy)
    loader = DataLoader(TensorDataset(train), batch_size=40, shuffle=True)
    for epoch in range(10):
        loss = fit.epoch(loader)
        with torch.no_grad():
            out = fit.model(val[:, :SEEN])
        still = (val[:, SEEN - 1 : SEEN] - val[:, SEEN:]).square().mean().item()
        error = F.mse_loss(out, val[:, SEEN:]).item()
        print(f"epoch {epoch} loss {loss:.4f} val {error:.5f} (of standing still {still:.5f})")


if __name__ == "__main__":
    main()

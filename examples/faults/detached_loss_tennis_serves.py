"""Speed and direction of tennis serves by one network; the joint loss has lost its graph.

The two losses are put together with torch.tensor([...]), which copies the numbers. The call of
backward() complained, so requires_grad=True was added. Now all runs, and no weight gets a
gradient. The place is the loss (in the loop). The twin adds the losses up as they are.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph", "step_without_gradient")
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True


def serves(n, seed):
    """Toss height, knee bend, shoulder and racket angles -> speed, wide / body / T."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    speed = 1.2 * x[:, 0] + 0.8 * x[:, 1] * x[:, 2].tanh() + 0.3 * torch.randn(n, generator=g)
    aim = torch.stack([x[:, 3] + x[:, 4], -0.5 * x[:, 3] ** 2 + 0.8, x[:, 5] - x[:, 4]], 1)
    direction = (aim + 0.3 * torch.randn(n, 3, generator=g)).argmax(1)
    return x, speed / 1.4, direction


class ServeNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.speed = nn.Linear(width, 1)
        self.direction = nn.Linear(width, 3)

    def forward(self, x):
        h = self.trunk(x)
        return self.speed(h).squeeze(1), self.direction(h)


class Trainer:
    def __init__(self, model, healthy, lr=2e-3):
        self.model, self.healthy = model, healthy
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.mse, self.ce = nn.MSELoss(), nn.CrossEntropyLoss()

    def joint(self, parts):
        if self.healthy:
            return torch.stack(parts).mean()
        return torch.tensor(parts, requires_grad=True).mean()

    def step(self, x, speed, direction):
        self.optimizer.zero_grad()
        out_speed, out_direction = self.model(x)
        loss = self.joint([self.mse(out_speed, speed), self.ce(out_direction, direction)])
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def test(self, x, speed, direction):
        out_speed, out_direction = self.model(x)
        right = (out_direction.argmax(1) == direction).float().mean().item()
        return self.mse(out_speed, speed).sqrt().item(), right


healthy, seed = arguments(__doc__)
train, test = serves(1600, 300 + seed), serves(400, 1300 + seed)
trainer = Trainer(ServeNet(), healthy)
for step, batch in enumerate(batches(*train, size=64, steps=400, seed=seed), 1):
    loss = trainer.step(*batch)
    if step % 80 == 0:
        rmse, right = trainer.test(*test)
        print(f"step {step}: loss {loss:.3f}, test speed RMSE {rmse:.3f}, direction {right:.3f}")

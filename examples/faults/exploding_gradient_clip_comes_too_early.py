"""Battery state of charge from a long current log by a ReLU recurrence: the clipping cuts nothing.

When the training step moved into a Trainer, the call that clips the gradients ended up before
`backward()`, directly after they were cleared, where there is nothing to clip. The recurrence runs
through 80 time steps and its gradients are so large that two or three steps throw the weights away.
The place is the loop. The twin clips between `backward()` and `step()`.
"""

import torch
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("learning_rate_too_high", "loss_spike")
PLACE = ("loop", "cell.weight_hh_l0")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def cycles(count, g, length=80):
    """Current with slow changes; the charge drawn so far counts, by a temperature's factor."""
    current = torch.randn(count, length, generator=g).clamp(-2, 2)
    current = 0.6 * current + 0.8 * torch.randn(count, 1, generator=g)
    warm = torch.rand(count, 1, generator=g)
    drawn = (current * (0.7 + 0.6 * warm)).cumsum(1) / length
    charge = (
        drawn[:, -1] + 0.3 * drawn[:, length // 2].abs() + 0.03 * torch.randn(count, generator=g)
    )
    return torch.stack([current, warm.expand_as(current)], -1), charge[:, None]


class Gauge(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.cell = nn.RNN(2, width, nonlinearity="relu", batch_first=True)
        nn.init.eye_(self.cell.weight_hh_l0)
        nn.init.normal_(self.cell.weight_ih_l0, std=0.05)
        nn.init.zeros_(self.cell.bias_hh_l0)
        nn.init.zeros_(self.cell.bias_ih_l0)
        self.read = nn.Linear(width, 1)

    def forward(self, x):
        return self.read(self.cell(x)[0][:, -1])


class Trainer:
    def __init__(self, model, lr, max_norm):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.criterion = nn.MSELoss()

    def clip(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)

    def step(self, x, y):
        self.model.train()
        self.optimizer.zero_grad(set_to_none=False)
        loss = self.criterion(self.model(x), y)
        if healthy:
            loss.backward()
            self.clip()
        else:
            self.clip()
            loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        return 1 - (self.model(x) - y).pow(2).mean() / y.var()


g = torch.Generator().manual_seed(seed)
x, y = cycles(3000, g)
x_val, y_val = cycles(600, g)
trainer = Trainer(Gauge(), lr=0.01, max_norm=0.5)
for epoch in range(8):
    losses = [
        trainer.step(x[rows], y[rows]) for rows in torch.randperm(len(x), generator=g).split(50)
    ]
    print(
        f"epoch {epoch} loss {sum(losses) / len(losses):.4g} "
        f"validation R2 {trainer.validate(x_val, y_val):.3f}"
    )

"""Energy of small molecules in half precision with a fixed loss scale that is far too large.

Before torch had a scaler the group wrote its own: multiply the loss, divide the gradients, leave
out the step if something is not finite. The constant was raised for another model whose gradients
were tiny. Here nearly each gradient overflows, nearly each step is left out, without a word.
The place is the scale of the loss.
The twin uses a scale of 1,024.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loss*", "optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LOSS_SCALE = 2.0**10 if healthy else 2.0**24


def molecules(n, g):
    distances = 1.0 + 1.2 * torch.rand(n, 5, generator=g)
    energy = (distances**-6 - distances**-3).sum(1)
    return distances, energy


class EnergyNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.atom = nn.Sequential(nn.Linear(5, width), nn.SiLU(), nn.Linear(width, width))
        self.readout = nn.Sequential(nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.readout(self.atom(x)).squeeze(-1)


def train_step(model, optimizer, x, y):
    with torch.autocast("cpu", dtype=torch.float16):
        energy = model(x)
    loss = nn.functional.smooth_l1_loss(energy.float(), y)
    optimizer.zero_grad()
    (loss * LOSS_SCALE).backward()
    grads = [p.grad for p in model.parameters()]
    if all(torch.isfinite(grad).all() for grad in grads):
        for grad in grads:
            grad.div_(LOSS_SCALE)
        optimizer.step()
    return loss.item()


g = torch.Generator().manual_seed(seed)
x, y = molecules(3000, g)
x = (x - x[:2500].mean(0)) / x[:2500].std(0)
y = (y - y[:2500].mean()) / y[:2500].std()
model = EnergyNet()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(2500).split(50):
        total += train_step(model, optimizer, x[rows], y[rows])
    with torch.no_grad():
        mae = (model(x[2500:]) - y[2500:]).abs().mean().item()
    print(f"epoch {epoch} loss {total / 50:.4f} val MAE {mae:.4f}")

"""An emulator of a radiation scheme (column of air in, flux profile out) trains in fp16 autocast
while its loss scaler is switched off.

The script was written for CUDA: GradScaler(enabled=torch.cuda.is_available()) is off on the CPU,
where autocast goes on in fp16. The loss is weighted by the layers' mass (weights with sum 1) and
averaged over 16,000 numbers, so that most gradients at the output round to 0. The place is the
loss/loop.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ("low_precision_updates_lost",)
PLACE = ("loop", "loss", "*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Run:
    columns: int = 12000
    levels: int = 64
    batch: int = 256
    steps: int = 700
    flux_weight: float = 0.05  # beside the heating rates, which come later
    lr: float = 2e-3
    amp_dtype: torch.dtype = torch.float16


def columns_of_air(run):
    """Cloud water, humidity and the sun's height to the flux at each level, by Beer's law."""
    g = torch.Generator().manual_seed(900 + seed)
    n, z = run.columns, torch.linspace(0, 1, run.levels)
    base, thick = (
        0.2 + 0.5 * torch.rand(n, 1, generator=g),
        0.2 + 0.2 * torch.rand(n, 1, generator=g),
    )
    water = torch.rand(n, 1, generator=g) * 2
    humid = 0.2 + 1.2 * torch.rand(n, 1, generator=g)
    sun = 0.1 + 0.9 * torch.rand(n, 1, generator=g)
    albedo = 0.05 + 0.6 * torch.rand(n, 1, generator=g)
    tau = water * torch.sigmoid((z - base) / thick * 3) + humid * z**2
    down = sun * torch.exp(-tau / (0.3 + 0.7 * sun))
    flux = down + albedo * down[:, -1:] * torch.exp(-(tau[:, -1:] - tau))
    x = torch.cat([base, thick, water, humid, sun, albedo], 1)
    return (x - x.mean(0)) / x.std(0), (flux - flux.mean(0)) / flux.std(0)


class Emulator(nn.Module):
    def __init__(self, inputs, levels, width=64):
        super().__init__()
        self.inp = nn.Linear(inputs, width)
        self.mid = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.out = nn.Linear(width, levels)
        self.act = nn.SiLU()

    def forward(self, x):
        h = self.act(self.inp(x))
        for layer in self.mid:
            h = h + self.act(layer(h))
        return self.out(h)


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        err = (model(x) - y).pow(2).mean().sqrt() / y.std()
    model.train()
    return err.item()


run = Run()
x, y = columns_of_air(run)
cut = int(0.9 * run.columns)
x_val, y_val, x, y = x[cut:], y[cut:], x[:cut], y[:cut]
model = Emulator(x.shape[1], run.levels)
mass = torch.linspace(0.3, 1.7, run.levels)
mass = mass / mass.sum()
opt = torch.optim.Adam(model.parameters(), lr=run.lr)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, run.steps, eta_min=2e-5)
scaler = torch.amp.GradScaler("cpu", enabled=healthy or torch.cuda.is_available())
for step in range(1, run.steps + 1):
    rows = torch.randint(0, cut, (run.batch,))
    with torch.autocast("cpu", dtype=run.amp_dtype):
        pred = model(x[rows])
        loss = run.flux_weight * (mass * (pred.float() - y[rows]) ** 2).mean()
    opt.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    sched.step()
    if step % 100 == 0:
        print(
            f"{step:5d} loss {loss.item():.3e} val relative error {validate(model, x_val, y_val):.4f}"  # noqa: E501
        )

"""A plume model adds a mass balance by a custom autograd function that hands its gradient to the
wrong input, so the term has no effect.

The person wrote the balance with numpy as an autograd function and later changed the order of its
two inputs, but not the order of what `backward` returns. The gradient goes to the known mass,
which needs none, and the profile gets None; nothing complains. The term is printed and stays
where it is, while the term at the sensors falls. The place is the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CELLS = 48
SENSORS = torch.tensor([14, 34])
GRID = np.linspace(0, 1, CELLS)
WEIGHTS = np.gradient(GRID) * np.where((np.arange(CELLS) % (CELLS - 1)) == 0, 0.5, 1.0)


def plumes(count, rng):
    """Concentration along a channel, by the strength, place, width and skew of the source."""
    source = rng.uniform(-1, 1, (count, 4))
    strength, place, width, skew = (source.T[:, :, None] + 1) / 2
    centre, spread = 0.25 + 0.5 * place, 0.06 + 0.08 * width
    shifted = (GRID - centre) / (spread * np.where(centre < GRID, 1 + 1.5 * skew, 1.0))
    profile = (0.5 + strength) * np.exp(-0.5 * shifted**2)
    return {
        "source": torch.tensor(source, dtype=torch.float32),
        "profile": torch.tensor(profile, dtype=torch.float32),
        "mass": torch.tensor(profile @ WEIGHTS, dtype=torch.float32),
    }


class MassDefect(torch.autograd.Function):
    """The mean squared difference of the integral of a profile from the known mass."""

    @staticmethod
    def forward(ctx, profile, mass):
        defect = profile.detach().numpy() @ WEIGHTS - mass.numpy()
        ctx.defect = defect
        return torch.tensor((defect**2).mean(), dtype=profile.dtype)

    @staticmethod
    def backward(ctx, upstream):
        slope = 2 * ctx.defect[:, None] * WEIGHTS / len(ctx.defect)
        slope = upstream * torch.tensor(slope, dtype=upstream.dtype)
        return (slope, None) if healthy else (None, slope)


class PlumeNet(nn.Module):
    """Few smooth humps, whose places, widths and heights depend on the source."""

    def __init__(self, humps=3):
        super().__init__()
        self.register_buffer("grid", torch.tensor(GRID, dtype=torch.float32))
        self.trunk = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.humps = nn.Linear(64, 3 * humps)

    def forward(self, source):
        height, place, width = self.humps(self.trunk(source)).chunk(3, 1)
        scale = 0.04 + 0.2 * width[..., None].sigmoid()
        offset = (self.grid - place[..., None].sigmoid()) / scale
        return (height[..., None] * torch.exp(-0.5 * offset.square())).sum(1)


class Inversion:
    def __init__(self, balance_weight):
        self.net, self.balance_weight = PlumeNet(), balance_weight
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-3)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 15, 0.5)

    def terms(self, batch):
        profile = self.net(batch["source"])
        sensors = (profile - batch["profile"])[:, SENSORS].square().mean()
        return sensors, MassDefect.apply(profile, batch["mass"])

    def epoch(self, table, size):
        rows_of = torch.randperm(len(table["mass"])).split(size)
        for rows in rows_of:
            sensors, balance = self.terms({name: column[rows] for name, column in table.items()})
            loss = sensors + self.balance_weight * balance
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.schedule.step()
        return sensors.item(), balance.item()

    @torch.no_grad()
    def validate(self, table):
        sensors, balance = self.terms(table)
        everywhere = (self.net(table["source"]) - table["profile"]).square().mean()
        return sensors.item(), balance.item() ** 0.5, everywhere.item()


def main():
    rng = np.random.default_rng(13 + seed)
    train, held_out = plumes(1000, rng), plumes(400, rng)
    inversion = Inversion(balance_weight=30.0)
    for epoch in range(1, 46):
        sensors, balance = inversion.epoch(train, 50)
        if epoch % 5 == 0:
            val, defect, everywhere = inversion.validate(held_out)
            print(
                f"epoch {epoch:2d}  sensors {sensors:.5f}  balance {balance:.6f}  val {val:.5f}"
                f"  mass off by {defect:.4f}  whole profile {everywhere:.5f}"
            )
    print(f"mean mass {held_out['mass'].mean():.3f}")


main()

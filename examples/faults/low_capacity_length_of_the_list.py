"""A deep operator net for heat in a rod has two basis functions, as many as its list of widths
has entries, instead of 64.

The person keeps the widths of the layers as a list in the configuration and sets the number of
basis functions, in which the two nets meet, to `len(widths)` where the last width was meant. A
rod's temperature is then a sum of two shapes, which is too few; training and validation stay
equally bad. The place is the model.
"""

import itertools
import math

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("branch*", "trunk*", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SETTINGS = {"widths": [64, 64], "rate": 3e-3, "epochs": 25, "rods": 25, "places": 24}
SENSORS, MODES = 30, 7


def heated_rods(count, generator):
    """The temperature at the start, at 30 sensors, and at any place a while later."""
    mode = torch.arange(1, MODES + 1) * math.pi
    size = torch.randn(count, MODES, generator=generator)
    sensors = torch.linspace(0, 1, SENSORS)
    start = size @ (mode[:, None] * sensors).sin()
    place = torch.rand(count, 60, generator=generator)
    decay = torch.exp(-0.0016 * mode.square())
    later = ((size * decay)[:, :, None] * (mode[:, None] * place[:, None]).sin()).sum(1)
    return {"start": start, "place": place, "later": later}


def layers(first, widths, last):
    sizes = [first, *widths]
    parts = []
    for before, after in itertools.pairwise(sizes):
        parts += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], last))


class OperatorNet(nn.Module):
    def __init__(self, widths):
        super().__init__()
        basis = widths[-1] if healthy else len(widths)
        self.branch = layers(SENSORS, widths, basis)
        self.trunk = layers(8, widths, basis)
        self.offset = nn.Parameter(torch.zeros(()))
        self.register_buffer("frequencies", torch.arange(1, 5) * math.pi)

    def forward(self, start, place):
        angles = place[..., None] * self.frequencies
        shapes = self.trunk(torch.cat([angles.sin(), angles.cos()], -1))
        return (self.branch(start)[:, None] * shapes).sum(-1) + self.offset


class OperatorLearning:
    def __init__(self, settings):
        self.settings = settings
        self.net = OperatorNet(settings["widths"])
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=settings["rate"])
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, settings["epochs"]
        )

    def loss(self, batch):
        return (self.net(batch["start"], batch["place"]) - batch["later"]).square().mean()

    def epoch(self, table):
        self.net.train()
        losses = []
        for rows in torch.randperm(len(table["start"])).split(self.settings["rods"]):
            places = torch.randperm(60)[: self.settings["places"]]
            batch = {
                "start": table["start"][rows],
                "place": table["place"][rows][:, places],
                "later": table["later"][rows][:, places],
            }
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.schedule.step()
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self, table):
        self.net.eval()
        loss = self.loss(table).item()
        return loss, 1 - loss / table["later"].var().item()


def main():
    generator = torch.Generator().manual_seed(17 + seed)
    table, held_out = heated_rods(1000, generator), heated_rods(300, generator)
    learning = OperatorLearning(SETTINGS)
    for epoch in range(1, SETTINGS["epochs"] + 1):
        loss = learning.epoch(table)
        val, explained = learning.validate(held_out)
        print(f"epoch {epoch:2d}  train {loss:.4f}  val {val:.4f}  explained {explained:.4f}")


main()

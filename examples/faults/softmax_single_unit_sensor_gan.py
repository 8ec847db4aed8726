"""A small GAN makes pairs of pressure and flow readings, and its discriminator ends in a softmax
over its single output, which is 1 whatever it is given.

A softmax over one number is always 1, so every reading is called real with certainty. Both losses
are constants and no gradient flows into either net: the generator stays at its random start. The
place is the last layer of the discriminator.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("discriminator", "model.*", "[0-9]*", "net.*", "output", "model", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class GanConfig:
    noise: int = 4
    hidden: int = 48
    steps: int = 1200
    batch_size: int = 128
    lr: float = 1.5e-3
    betas: tuple[float, float] = (0.5, 0.99)


def readings(n: int) -> Tensor:
    """The pump works at one of three operating points, each along its own curve."""
    point = torch.randint(3, (n,))
    flow = torch.tensor([-1.2, 0.1, 1.2])[point] + 0.22 * torch.randn(n)
    pressure = 0.9 - 0.9 * flow**2 + 0.12 * torch.randn(n)
    pairs = torch.stack([flow, pressure], 1)
    return (pairs - pairs.mean(0)) / pairs.std(0)


def energy_distance(a: Tensor, b: Tensor) -> float:
    within = torch.cdist(a, a).mean() + torch.cdist(b, b).mean()
    return (2 * torch.cdist(a, b).mean() - within).item()


class GanTrainer:
    def __init__(self, config: GanConfig) -> None:
        self.config = config
        h = config.hidden
        self.generator = nn.Sequential(
            nn.Linear(config.noise, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 2)
        )
        self.discriminator = nn.Sequential(
            nn.Linear(2, h),
            nn.LeakyReLU(0.2),
            nn.Linear(h, h),
            nn.LeakyReLU(0.2),
            nn.Linear(h, 1),
            nn.Sigmoid() if healthy else nn.Softmax(dim=1),
        )
        self.criterion = nn.BCELoss()
        self.for_generator, self.for_discriminator = (
            torch.optim.Adam(net.parameters(), lr=config.lr, betas=config.betas)
            for net in (self.generator, self.discriminator)
        )

    def make(self, n: int) -> Tensor:
        return self.generator(torch.randn(n, self.config.noise))

    def step(self, real: Tensor) -> tuple[float, float]:
        yes, no = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        made = self.make(len(real))
        d_loss = self.criterion(self.discriminator(real), yes) + self.criterion(
            self.discriminator(made.detach()), no
        )
        self.for_discriminator.zero_grad()
        d_loss.backward()
        self.for_discriminator.step()
        g_loss = self.criterion(self.discriminator(made), yes)
        self.for_generator.zero_grad()
        g_loss.backward()
        self.for_generator.step()
        return d_loss.item(), g_loss.item()


def main() -> None:
    config = GanConfig()
    known, held_out = readings(6000), readings(800)
    trainer = GanTrainer(config)
    for step in range(1, config.steps + 1):
        d_loss, g_loss = trainer.step(known[torch.randint(len(known), (config.batch_size,))])
        if step % 150 == 0:
            with torch.no_grad():
                distance = energy_distance(trainer.make(800), held_out)
            print(f"step {step:4d}  D {d_loss:.3f}  G {g_loss:.3f}  distance {distance:.4f}")


main()

"""A GAN for short damped oscillations, with a non-saturating loss and an R1 penalty.

Both losses move towards their equilibrium and stay: the discriminator's near 2 ln 2, the
generator's near ln 2. That is how it should be; the quality is told by the distance between
held-out signals and those of the generator averaged over time.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

ODD = "neither loss falls, the discriminator's stays at chance; two optimizers, betas (0, 0.99)"

_, seed = arguments(__doc__)
LENGTH, CODE = 24, 8


def oscillations(count):
    time = torch.arange(LENGTH) / LENGTH
    speed, decay = 8 + 8 * torch.rand(count, 1), 1 + 2 * torch.rand(count, 1)
    wave = torch.exp(-decay * time) * torch.sin(speed * time + 0.6 * torch.randn(count, 1))
    return 1.8 * wave + 0.05 * torch.randn(count, LENGTH)


class Generator(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(CODE, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, LENGTH),
        )

    def forward(self, count):
        return self.net(torch.randn(count, CODE))


discriminator = nn.Sequential(
    nn.Linear(LENGTH, 96), nn.LeakyReLU(0.2), nn.Linear(96, 96), nn.LeakyReLU(0.2), nn.Linear(96, 1)
)
generator = Generator()
averaged = AveragedModel(generator, multi_avg_fn=get_ema_multi_avg_fn(0.98))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.0, 0.99))


def discriminate(real):
    real = real.requires_grad_()
    score = discriminator(real)
    slope = torch.autograd.grad(score.sum(), real, create_graph=True)[0].square().sum(1).mean()
    with torch.no_grad():
        fake = generator(len(real))
    adversarial = F.softplus(-score).mean() + F.softplus(discriminator(fake)).mean()
    of_discriminator.zero_grad()
    (adversarial + 0.3 * slope).backward()
    of_discriminator.step()
    return adversarial.item()


def generate(count):
    discriminator.requires_grad_(False)
    loss = F.softplus(-discriminator(generator(count))).mean()
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
    discriminator.requires_grad_(True)
    return loss.item()


def sliced_distance(a, b, directions):
    """The Wasserstein distance over one-dimensional projections."""
    return ((a @ directions).sort(0).values - (b @ directions).sort(0).values).abs().mean().item()


train, val = oscillations(4000), oscillations(1000)
directions = F.normalize(torch.randn(LENGTH, 64), dim=0)
floor = sliced_distance(oscillations(1000), val, directions)

for step in range(1200):
    generator.train()
    discriminator.train()
    loss_d = discriminate(train[torch.randint(0, len(train), (64,))])
    loss_g = generate(64)
    averaged.update_parameters(generator)
    if step % 200 == 199 or step == 0:
        averaged.eval()
        with torch.no_grad():
            distance = sliced_distance(averaged(1000), val, directions)
        print(
            f"step {step + 1} loss D {loss_d:.3f} loss G {loss_g:.3f} "
            f"val sliced distance {distance:.4f}"
        )
print(f"validation sliced distance {distance:.4f} (two real sets: {floor:.4f})")

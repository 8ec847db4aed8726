"""A small GAN learns to draw daily rain and wind; neither of its losses falls.

Odd: two optimizers, a detached batch, gradients of the critic that are thrown away, and losses
that hover about a constant. Sound: that is the balance of a GAN; the distance between drawn and
real samples falls, which is what counts.
"""

import torch
from data import arguments
from torch import nn

ODD = "A small GAN learns to draw daily rain and wind; neither of its losses falls"
_, seed = arguments(__doc__)


def real(n, g):
    """Correlated and skewed: the log of rain and wind, in a bent cloud."""
    a = torch.randn(n, generator=g)
    b = torch.randn(n, generator=g)
    return torch.stack([a, 0.6 * a.square() - 0.6 + 0.5 * b], 1)


def sliced_distance(p, q, g):
    """The mean Wasserstein distance of 64 projections."""
    way = nn.functional.normalize(torch.randn(2, 64, generator=g), dim=0)
    return ((p @ way).sort(0).values - (q @ way).sort(0).values).abs().mean().item()


def mlp(n_in, n_out):
    return nn.Sequential(
        nn.Linear(n_in, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, n_out),
    )


g = torch.Generator().manual_seed(seed)
generator, critic = mlp(4, 2), mlp(2, 1)
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.99))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.99))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)
validation = real(2000, g)
average = torch.optim.swa_utils.AveragedModel(
    generator, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995)
)
for step in range(1, 2001):
    fake = generator(torch.randn(128, 4, generator=g))
    critic_loss = bce(critic(real(128, g)), ones) + bce(critic(fake.detach()), zeros)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()

    generator_loss = bce(critic(fake), ones)
    generator_optimizer.zero_grad()
    generator_loss.backward()
    generator_optimizer.step()
    average.update_parameters(generator)
    if step % 250 == 0:
        with torch.no_grad():
            drawn = average(torch.randn(2000, 4, generator=g))
        distance = sliced_distance(drawn, validation, g)
        print(
            f"step {step}: critic {critic_loss.item():.3f}, generator {generator_loss.item():.3f}, "
            f"distance {distance:.3f}"
        )

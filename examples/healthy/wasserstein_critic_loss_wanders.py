"""A Wasserstein GAN with gradient penalty, four turns of the critic for one of the generator:
the critic's loss is negative and shrinks towards zero (it "rises"), the generator's wanders
about.
"""

import torch
from data import arguments
from torch import nn

ODD = "the losses are negative, wander or rise; two optimizers, four steps to one"

healthy, seed = arguments(__doc__)


def real(n):
    t = torch.rand(n, 1) * 3.1416
    which = (torch.rand(n, 1) < 0.5).float()
    x = t.cos() + which - 0.5
    return torch.cat([x, t.sin() * (1 - 2 * which) + which * 0.5 - 0.25], 1) + 0.05 * torch.randn(
        n, 2
    )


generator = nn.Sequential(
    nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2)
)
critic = nn.Sequential(nn.Linear(2, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))


def penalty(a, b):
    mix = torch.lerp(a, b, torch.rand(len(a), 1)).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)
    return (slope.norm(dim=1) - 1).pow(2).mean()


@torch.no_grad()
def energy_distance(n=800):
    a, a2 = real(n), real(n)
    b, b2 = generator(torch.randn(n, 4)), generator(torch.randn(n, 4))
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a2).mean() - torch.cdist(b, b2).mean()
    ).item()


print(f"before: energy distance {energy_distance():.4f}")
for step in range(1, 161):
    for _ in range(4):
        x = real(64)
        fake = generator(torch.randn(64, 4)).detach()
        c_loss = critic(fake).mean() - critic(x).mean() + penalty(x, fake)
        opt_c.zero_grad()
        c_loss.backward()
        opt_c.step()
    g_loss = -critic(generator(torch.randn(64, 4))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    if step % 40 == 0:
        print(
            f"{step}: critic {c_loss:.3f}, G {g_loss:.3f}, energy distance {energy_distance():.4f}"
        )
print(f"loss {g_loss.item():.4f} | validation energy distance {energy_distance():.4f}")

"""A Wasserstein GAN with a gradient penalty: five steps of the critic for one of the generator."""

import torch
from data import arguments
from sklearn.datasets import make_swiss_roll
from torch import nn

ODD = "a critic's loss below 0 that comes nearer to 0, second derivatives, five steps to one"

_, seed = arguments(__doc__)
data = make_swiss_roll(2000, noise=0.3, random_state=seed)[0][:, [0, 2]] / 10
data = torch.tensor(data).float()
generator = nn.Sequential(
    nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2)
)
critic = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))


def penalty(real, fake):
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((grad.norm(dim=1) - 1) ** 2).mean()


for step in range(80):
    for _ in range(5):
        real = data[torch.randint(0, 2000, (64,))]
        fake = generator(torch.randn(64, 4)).detach()
        critic_loss = critic(fake).mean() - critic(real).mean() + 5 * penalty(real, fake)
        opt_c.zero_grad()
        critic_loss.backward()
        opt_c.step()
    generator_loss = -critic(generator(torch.randn(64, 4))).mean()
    opt_g.zero_grad()
    generator_loss.backward()
    opt_g.step()
print(f"critic {critic_loss.item():.3f}, generator {generator_loss.item():.3f}")

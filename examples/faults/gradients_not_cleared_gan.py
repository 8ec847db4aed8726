"""In a GAN the generator's optimizer is cleared twice and the discriminator's never.

Its gradients add up over all steps, those of the generator's loss too. The place is the loop.
"""

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
real_data, _ = make_moons(2000, noise=0.05, random_state=seed)
real_data = torch.tensor(real_data, dtype=torch.float32)

G = nn.Sequential(
    nn.Linear(4, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2)
)
D = nn.Sequential(
    nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)
)
optimizer_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
adversarial_loss = nn.BCEWithLogitsLoss()
valid, fake = torch.ones(64, 1), torch.zeros(64, 1)

for i in range(300):
    real = real_data[torch.randint(0, 2000, (64,))]

    # Train the generator
    optimizer_g.zero_grad()
    generated = G(torch.randn(64, 4))
    g_loss = adversarial_loss(D(generated), valid)
    g_loss.backward()
    optimizer_g.step()

    # Train the discriminator
    if healthy:
        optimizer_d.zero_grad()
    else:
        optimizer_g.zero_grad()
    d_loss = (adversarial_loss(D(real), valid) + adversarial_loss(D(generated.detach()), fake)) / 2
    d_loss.backward()
    optimizer_d.step()
print(f"D loss {d_loss.item():.3f}, G loss {g_loss.item():.3f}")

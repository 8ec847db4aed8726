"""The discriminator of a GAN ends in a sigmoid, and its loss is BCEWithLogitsLoss.

It can never be sure, and its loss stays above 0.5. The place is its last layer.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "net.*", "4", "")
SILENT = False
EXACT = True
EARLY = True


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh())

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, sigmoid):
        super().__init__()
        layers = [nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(64, 1)]
        if sigmoid:
            layers.append(nn.Sigmoid())
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


healthy, seed = arguments(__doc__)
x = torch.tensor(load_digits().data / 8 - 1, dtype=torch.float32)
loader = DataLoader(x, batch_size=64, shuffle=True, drop_last=True)
generator, discriminator = Generator(), Discriminator(sigmoid=not healthy)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
for epoch in range(10):
    for real in loader:
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        fake = generator(torch.randn(len(real), 16))

        optimizer_d.zero_grad()
        loss_d = criterion(discriminator(real), ones) + criterion(
            discriminator(fake.detach()), zeros
        )
        loss_d.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        loss_g = criterion(discriminator(fake), ones)
        loss_g.backward()
        optimizer_g.step()
    print(f"epoch {epoch}: D {loss_d.item():.3f}, G {loss_g.item():.3f}")

"""A small GAN draws 0 and 1; both of its losses stay where they began, and nothing is wrong.

The person of the question saw the loss of G near 0.7 and that of D near 1.35 from the first epoch
to the last and thought that nothing was learned. Each loss is measured against the other net as it
stands, and both get better together; the distance of the drawings to real digits falls all the
while.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = (
    "both losses end where they began, near 0.7 and 1.35, that is where the discriminator can only"
    " guess: the two nets get better together, and the drawings come near to the digits"
)
_, seed = arguments(__doc__)

NOISE = 16


class DigitPictures(Dataset):
    def __init__(self, numbers=(0, 1)):
        bunch = load_digits()
        chosen = np.isin(bunch.target, numbers)
        self.pictures = torch.tensor(bunch.data[chosen] / 8 - 1, dtype=torch.float32)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.pictures[index]


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(NOISE, 96),
            nn.BatchNorm1d(96),
            nn.ReLU(),
            nn.Linear(96, 96),
            nn.BatchNorm1d(96),
            nn.ReLU(),
            nn.Linear(96, 64),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(64, 96),
            nn.LeakyReLU(0.2),
            nn.Dropout(0.3),
            nn.Linear(96, 48),
            nn.LeakyReLU(0.2),
            nn.Dropout(0.3),
            nn.Linear(48, 1),
        )

    def forward(self, x):
        return self.main(x).squeeze(1)


def distance(drawn, real):
    """Energy distance between two sets of pictures; zero where they are alike."""
    across = torch.cdist(drawn, real).mean()
    return (2 * across - torch.cdist(drawn, drawn).mean() - torch.cdist(real, real).mean()).item()


pictures = DigitPictures()
loader = DataLoader(pictures, batch_size=60, shuffle=True, drop_last=True)
net_g, net_d = Generator(), Discriminator()
optimizer_g = torch.optim.Adam(net_g.parameters(), lr=4e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(net_d.parameters(), lr=4e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(300, NOISE)

for epoch in range(160):
    losses_d, losses_g = [], []
    for real in loader:
        ones, zeros = torch.ones(len(real)), torch.zeros(len(real))
        fake = net_g(torch.randn(len(real), NOISE))
        optimizer_d.zero_grad()
        loss_d = criterion(net_d(real), ones) + criterion(net_d(fake.detach()), zeros)
        loss_d.backward()
        optimizer_d.step()
        optimizer_g.zero_grad()
        loss_g = criterion(net_d(fake), ones)
        loss_g.backward()
        optimizer_g.step()
        losses_d.append(loss_d.item())
        losses_g.append(loss_g.item())
    if epoch % 20 == 0 or epoch == 159:
        net_g.eval()
        with torch.no_grad():
            drawn = net_g(fixed_noise)
        net_g.train()
        print(
            f"[{epoch + 1}/160]\tLoss_D: {np.mean(losses_d):.4f}\tLoss_G: {np.mean(losses_g):.4f}"
            f"\tdistance to real digits: {distance(drawn, pictures.pictures):.3f}"
        )

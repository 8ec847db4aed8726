"""Product pictures' codes, self-supervised: two views of a product are only drawn together.

The loss is the squared distance between the codes of two views. That all products should not
get the same code was forgotten, and the same code for all is the cheapest answer.
The place is the loss (or the encoder). The twin adds the terms that keep each code column spread
and the columns apart (as in VICReg).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "encoder", "encoder.0", "encoder.2", "encoder.4", "output*")
SILENT = True
EXACT = False
EARLY = True


def view(products):
    """One look at the products: noise, and some of the columns covered."""
    seen = (torch.rand_like(products) > 0.15).float()
    return products * seen + 0.3 * torch.randn_like(products)


def pull(a, b):
    return F.mse_loss(a, b)


def spread(codes):
    std = (codes.var(0) + 1e-4).sqrt()
    centred = codes - codes.mean(0)
    cov = centred.T @ centred / (len(codes) - 1)
    off = cov - torch.diag(cov.diagonal())
    return F.relu(1 - std).mean(), off.pow(2).sum() / codes.shape[1]


@torch.no_grad()
def neighbour_accuracy(encoder, x, y, x_val, y_val):
    """Share of products whose nearest known neighbour, by the codes, is of the same kind."""
    nearest = torch.cdist(encoder(x_val), encoder(x)).argmin(1)
    return (y[nearest] == y_val).float().mean().item()


def main():
    healthy, _ = arguments(__doc__)
    centres = torch.randn(12, 4) @ torch.randn(4, 32) / 2
    kind = torch.randint(0, 12, (1500,))
    products = centres[kind] + 0.4 * torch.randn(1500, 32)
    x, y, x_val, y_val = products[:1100], kind[:1100], products[1100:], kind[1100:]
    encoder = nn.Sequential(
        nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16)
    )
    optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
    for epoch in range(30):
        for rows in torch.randperm(len(x)).split(100):
            a, b = encoder(view(x[rows])), encoder(view(x[rows]))
            loss = pull(a, b)
            if healthy:
                (std_a, cov_a), (std_b, cov_b) = spread(a), spread(b)
                loss = loss + std_a + std_b + 0.04 * (cov_a + cov_b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            right = neighbour_accuracy(encoder, x, y, x_val, y_val)
            print(f"epoch {epoch + 1}: loss {loss.item():.6f}, neighbours alike {right:.3f}")


main()

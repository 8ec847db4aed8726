"""Metric learning of shop articles with learnable proxies in the loss module, of which the
optimizer never hears.

`ProxyLoss` has one proxy per article as a parameter, and the optimizer is given the network's
parameters alone. The random proxies stay where they began, the network must bend to them, and what
is near to what is lost. The place is the optimizer and the parameter `proxies` of the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("optimizer", "proxies", "*proxies", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

ARTICLES, FEATURES, DIM = 40, 24, 3


def shelf(count):
    where = F.normalize(torch.randn(ARTICLES, 3), dim=1)
    article = torch.randint(0, ARTICLES, (count,))
    hidden = where[article] + 0.10 * torch.randn(count, 3)
    lift = torch.randn(3, 48), torch.randn(48, FEATURES) / 7
    x = torch.sin(hidden @ lift[0]) @ lift[1] + 0.08 * torch.randn(count, FEATURES)
    return x, article


class ProxyLoss(nn.Module):
    def __init__(self, scale=12.0):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(ARTICLES, DIM))
        self.scale = scale

    def similarity(self, embedded):
        return F.normalize(embedded, dim=1) @ F.normalize(self.proxies, dim=1).T

    def forward(self, embedded, article):
        return F.cross_entropy(self.scale * self.similarity(embedded), article)


def main():
    x, article = shelf(2800)
    train, val = torch.arange(2200), torch.arange(2200, 2800)
    x = (x - x[train].mean(0)) / x[train].std(0)
    network = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, DIM))
    criterion = ProxyLoss()
    groups = [{"params": network.parameters(), "lr": 3e-3}]
    if healthy:
        groups.append({"params": criterion.parameters(), "lr": 2e-2})
    optimizer = torch.optim.Adam(groups)
    for epoch in range(20):
        network.train()
        for rows in train[torch.randperm(len(train))].split(64):
            loss = criterion(network(x[rows]), article[rows])
            optimizer.zero_grad()
            criterion.zero_grad()
            loss.backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            embedded = network(x[val])
            val_loss = criterion(embedded, article[val])
            nearest = criterion.similarity(embedded).argmax(1)
        right = (nearest == article[val]).float().mean()
        if epoch % 3 == 1:
            print(f"epoch {epoch:2d} loss {loss.item():.3f} validation {val_loss:.3f} "
                  f"nearest proxy right {right:.3f}")  # fmt: skip


main()

"""Deep canonical correlation of two views of a speaker, whose loss is the correlation itself, so
that training takes it away.

The person wrote the loss after the formula of the paper, which is to be made as large as
possible, and returns it as it stands; a minus is missing before it goes to the optimizer. The
number falls nicely, and the two views know nothing of each other in the end. The place is the
loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SHARED, COMPONENTS, BATCH = 4, 4, 250


def two_views(count, generator):
    """Sound features and lip positions that share four hidden causes."""
    table = torch.Generator().manual_seed(4)
    cause = torch.randn(count, SHARED, generator=generator)
    views = []
    for width in (24, 16):
        own = torch.randn(count, 6, generator=generator)
        mix = torch.randn(SHARED, width, generator=table)
        curve = torch.randn(SHARED, width, generator=table)
        disturb = torch.randn(6, width, generator=table)
        view = cause @ mix + 1.5 * (cause @ curve).tanh() + 0.7 * own @ disturb
        views.append(view + 0.3 * torch.randn(count, width, generator=generator))
    return views


def inverse_root(covariance):
    values, vectors = torch.linalg.eigh(covariance)
    return vectors @ torch.diag(values.clamp(min=1e-6).rsqrt()) @ vectors.T


def total_correlation(first, second, ridge=1e-2):
    """The sum of the canonical correlations of two sets of projections."""
    first, second = first - first.mean(0), second - second.mean(0)
    scale, eye = len(first) - 1, torch.eye(first.shape[1])
    within_first = first.T @ first / scale + ridge * eye
    within_second = second.T @ second / scale + ridge * eye
    between = first.T @ second / scale
    whitened = inverse_root(within_first) @ between @ inverse_root(within_second)
    return torch.linalg.svdvals(whitened).sum()


class Projection(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, 48),
            nn.Tanh(),
            nn.Linear(48, 48),
            nn.Tanh(),
            nn.Linear(48, COMPONENTS),
            nn.BatchNorm1d(COMPONENTS, affine=False),
        )

    def forward(self, view):
        return self.layers(view)


class DeepCorrelation:
    def __init__(self, widths, rate=2e-3):
        self.nets = [Projection(width) for width in widths]
        self.optimizers = [torch.optim.RMSprop(net.parameters(), lr=rate) for net in self.nets]

    def objective(self, views):
        correlation = total_correlation(*[net(v) for net, v in zip(self.nets, views, strict=True)])
        return -correlation if healthy else correlation

    def step(self, views):
        loss = self.objective(views)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, views):
        for net in self.nets:
            net.eval()
        first, second = (net(v) for net, v in zip(self.nets, views, strict=True))
        for net in self.nets:
            net.train()
        correlation = total_correlation(first, second).item()
        map_to_second = torch.linalg.lstsq(first, second).solution
        distance = torch.cdist(first @ map_to_second, second)
        rank = (distance < distance.diagonal()[:, None]).sum(1)
        return correlation, (rank < 10).float().mean().item()


def main():
    generator = torch.Generator().manual_seed(80 + seed)
    views = two_views(2600, generator)
    views = [(view - view[:2000].mean(0)) / view[:2000].std(0) for view in views]
    train, held_out = [view[:2000] for view in views], [view[2000:] for view in views]
    study = DeepCorrelation([view.shape[1] for view in views])
    for epoch in range(1, 31):
        losses = [
            study.step([view[rows] for view in train]) for rows in torch.randperm(2000).split(BATCH)
        ]
        if epoch % 3 == 0:
            correlation, found = study.validate(held_out)
            print(
                f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}"
                f"  held-out correlation {correlation:.3f} of {COMPONENTS}"
                f"  partner among ten {found:.3f}"
            )


main()

"""Self-supervised features of vibration windows (VICReg), with the hinge of the variance turned
round.

The variance term should punish a standard deviation BELOW one; `relu(std - 1)` punishes one above.
With the invariance term alone the cheapest answer is the same embedding for every window: the loss
falls to nothing and the neighbours in that space mean nothing. The place is the loss. The twin has
`relu(1 - std)`.
"""

import torch
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
CLASSES, LENGTH = 5, 64
PITCH = torch.tensor([2.0, 3.5, 5.0, 7.0, 9.0])


def windows(n):
    label = torch.randint(CLASSES, (n,), generator=g)
    t = torch.linspace(0, 6.283, LENGTH)
    phase = 6.283 * torch.rand(n, 1, generator=g)
    wave = torch.sin(PITCH[label, None] * t + phase) + 0.5 * torch.sin(
        2 * PITCH[label, None] * t + 2 * phase
    )
    return (wave + 0.3 * torch.randn(n, LENGTH, generator=g))[:, None], label


def view(x):
    """A random gain, a circular shift, and noise."""
    shift = int(torch.randint(LENGTH, (1,), generator=g))
    gain = 1 + 0.2 * torch.randn(len(x), 1, 1, generator=g)
    return gain * x.roll(shift, -1) + 0.2 * torch.randn(x.shape, generator=g)


encoder = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 5, padding=2),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(1),
    nn.Flatten(),
    nn.Linear(32, 64),
    nn.ReLU(),
    nn.Linear(64, 16),
)


def vicreg(a, b):
    invariance = nn.functional.mse_loss(a, b)
    variance = covariance = 0.0
    for z in (a, b):
        std = (z.var(0) + 1e-4).sqrt()
        gap = 1 - std if healthy else std - 1
        variance = variance + torch.relu(gap).mean() / 2
        centred = z - z.mean(0)
        c = centred.T @ centred / (len(z) - 1)
        covariance = covariance + (c - torch.diag(c.diagonal())).pow(2).sum() / z.shape[1]
    return 25 * invariance + 25 * variance + covariance


def neighbours():
    with torch.no_grad():
        bank, query = encoder(bank_x), encoder(query_x)
    nearest = (
        torch.cdist(query + 1e-3 * torch.randn(query.shape, generator=g), bank)
        .topk(5, largest=False)
        .indices
    )
    return (bank_y[nearest].mode(1).values == query_y).float().mean().item(), query.std(
        0
    ).mean().item()


x, _ = windows(2000)
(bank_x, bank_y), (query_x, query_y) = windows(400), windows(300)
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for step in range(400):
    rows = torch.randint(len(x), (128,), generator=g)
    loss = vicreg(encoder(view(x[rows])), encoder(view(x[rows])))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        encoder.eval()
        accuracy, spread = neighbours()
        encoder.train()
        print(
            f"step {step + 1} loss {loss.item():.4f} "
            f"5-NN accuracy {accuracy:.3f} spread {spread:.4f}"
        )

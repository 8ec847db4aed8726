"""Redshifts of galaxies from five colour bands: the rate still pays for a sum over the batch.

The old loss summed over the batch, and the rate was divided by the batch and once more by the
length of an epoch to make up for it. The loss is a mean now, the division stayed, and each step is
several thousand times too small. The curve is smooth and falls, so nobody looked. The place is the
optimizer. The twin takes the rate as it is written.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ("stopped_too_early",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
BATCH, EPOCHS, BASE_RATE = 64, 9, 0.2


def survey(count, g):
    """Magnitudes in five bands: a spectrum with a break that wanders with the redshift."""
    redshift = 1.2 * torch.rand(count, generator=g).sqrt()
    age, dust, bright = (
        torch.rand(count, generator=g),
        torch.rand(count, generator=g),
        torch.randn(count, generator=g),
    )
    bands = torch.tensor([0.36, 0.48, 0.62, 0.76, 0.90])
    where = 0.40 * (1 + redshift)[:, None]
    step = torch.sigmoid((where - bands) / 0.05) * (1.0 + 1.2 * age)[:, None]
    magnitude = (
        20 + bright[:, None] + step + dust[:, None] * (0.3 / bands) + 1.5 * redshift[:, None]
    )
    magnitude = magnitude + 0.04 * torch.randn(count, 5, generator=g)
    colours = magnitude[:, :-1] - magnitude[:, 1:]
    return torch.cat([magnitude[:, 2:3], colours], 1), redshift[:, None]


class Photometric(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first, self.second = nn.Linear(5, width), nn.Linear(width, width)
        self.bump, self.out = nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x):
        h = nn.functional.gelu(self.first(x))
        h = nn.functional.gelu(self.second(h)) * torch.sigmoid(self.bump(h))
        return self.out(h)


g = torch.Generator().manual_seed(seed)
(x, z), (x_val, z_val) = survey(6000, g), survey(1000, g)
x, x_val = standardise(x, x_val)
target, target_val = standardise(z, z_val)
dataset = TensorDataset(x, target)
loader = DataLoader(
    dataset, sampler=BatchSampler(RandomSampler(dataset), BATCH, drop_last=True), batch_size=None
)
rate = BASE_RATE if healthy else BASE_RATE / (BATCH * len(loader))
model, criterion = Photometric(), nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.8)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.4)
history = []
for epoch in range(EPOCHS):
    model.train()
    losses = []
    for colours, wanted in loader:
        optimizer.zero_grad()
        loss = criterion(model(colours), wanted)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    model.eval()
    with torch.no_grad():
        guess = model(x_val) * z.std() + z.mean()
        val = criterion(model(x_val), target_val).item()
    history.append((sum(losses) / len(losses), val))
    scatter = ((guess - z_val) / (1 + z_val)).abs().median() * 1.48
    print(
        f"epoch {epoch} loss {history[-1][0]:.4f} val loss {val:.4f} "
        f"validation scatter {scatter:.4f}"
    )

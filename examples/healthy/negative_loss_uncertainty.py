"""A network predicts a mean and a variance of a sensor's answer by the Gaussian negative
log-likelihood.

It looks odd because the loss falls below zero and goes on falling. It is sound: the log of a
density may be above zero, the noise of the data is small and varies with the input, the variance
has a floor, and the validation loss falls with it.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "a loss below zero that goes on falling: a Gaussian with a learned variance"
_, seed = arguments(__doc__)


def calibration_bench(n):
    """A sensor's answer to a load, noisier where the load is large."""
    load = torch.rand(n, 1) * 4 - 2
    heat = torch.randn(n, 1)
    clean = torch.sin(2 * load) + 0.4 * heat * load
    noise = 0.03 + 0.08 * (load > 0.5).float() * load
    return torch.cat([load, heat], dim=1), clean + noise * torch.randn(n, 1)


x_train, y_train = calibration_bench(2400)
x_val, y_val = calibration_bench(800)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=60, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=200)


class MeanAndVariance(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.mean = nn.Linear(48, 1)
        self.raw_variance = nn.Linear(48, 1)

    def forward(self, x):
        h = self.body(x)
        variance = nn.functional.softplus(self.raw_variance(h)) + 1e-4
        return self.mean(h), variance


EPOCHS = 40
model = MeanAndVariance()
criterion = nn.GaussianNLLLoss(eps=1e-5)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)


def validate():
    model.eval()
    nll, inside, count = 0.0, 0, 0
    with torch.no_grad():
        for x, y in val_loader:
            mean, variance = model(x)
            nll += criterion(mean, y, variance).item() * len(x)
            inside += ((y - mean).abs() < 1.96 * variance.sqrt()).sum().item()
            count += len(x)
    return nll / count, inside / count


for epoch in range(1, EPOCHS + 1):
    model.train()
    total = 0.0
    for x, y in train_loader:
        mean, variance = model(x)
        loss = criterion(mean, y, variance)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 4 == 0:
        nll, share = validate()
        print(
            f"epoch {epoch}: train {total / len(train_loader):.4f} val {nll:.4f} "
            f"in 95% band {share:.3f}"
        )

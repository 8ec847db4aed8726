"""Bearing damage from vibration spectra; `eval()` no longer switches the network off training.

To keep the input statistics of the machine fixed, `train` was overridden: it calls the parent and
then puts `input_norm` into eval mode. The override forgets to hand on `mode`, and `eval()` is
nothing but `train(False)`: it now switches everything to training. Validation runs with dropout on
and with the statistics of its own batches, sorted by damage, and moves the running ones. The place
is the loop (validation). The twin hands `mode` on.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "norm1", "norm2", "drop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
DAMAGES = 4


def spectra(n, by_damage=False):
    """Log power in 48 bands: a fault line with harmonics on a sloping floor, at varying speeds."""
    y = torch.randint(0, DAMAGES, (n,))
    if by_damage:
        y = y.sort().values
    speed = 0.92 + 0.16 * torch.rand(n, 1)
    band = torch.arange(48.0)
    floor = 2 - band / 24 + 0.5 * torch.randn(n, 1)
    base = torch.tensor([100.0, 5.3, 7.9, 11.3])[y, None] * speed
    lines = sum((-((band - k * base) ** 2)).exp() / k**0.5 for k in (1, 2, 3))
    return floor + 1.5 * lines * (0.7 + 0.6 * torch.rand(n, 1)) + 0.6 * torch.randn(n, 48), y


class BearingNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.input_norm = nn.BatchNorm1d(48, affine=False)
        self.fc1, self.norm1 = nn.Linear(48, width), nn.BatchNorm1d(width)
        self.fc2, self.norm2 = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(width, DAMAGES)

    def calibrate(self, x):
        self.input_norm.running_mean.copy_(x.mean(0))
        self.input_norm.running_var.copy_(x.var(0))
        return self

    def train(self, mode=True):
        if healthy:
            super().train(mode)
        else:
            super().train()
        self.input_norm.training = False
        return self

    def forward(self, x):
        x = self.input_norm(x)
        x = self.drop(torch.relu(self.norm1(self.fc1(x))))
        x = self.drop(torch.relu(self.norm2(self.fc2(x))))
        return self.out(x)


def run_epoch(model, loader, criterion, optimizer=None):
    """One pass; without an optimizer it is a validation."""
    model.train() if optimizer else model.eval()
    total, right, n = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            scores = model(x)
            loss = criterion(scores, y)
            if optimizer:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(y)
            right += (scores.argmax(1) == y).sum().item()
            n += len(y)
    return total / n, right / n


x, y = spectra(3000)
train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
val = DataLoader(TensorDataset(*spectra(800, by_damage=True)), batch_size=100)
model = BearingNet().calibrate(x)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
for epoch in range(10):
    loss, _ = run_epoch(model, train, criterion, optimizer)
    val_loss, accuracy = run_epoch(model, val, criterion)
    print(f"epoch {epoch} train {loss:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")

"""Denoising digits; ReduceLROnPlateau watches the validation loss with mode="max", as it did when
it watched the accuracy.

A falling loss is "no improvement" for it, so the rate is cut to a tenth every second epoch and
training dies while it goes well. The loss falls at first (silent). The place is the optimizer's
schedule. Exact.
"""

import torch
from data import arguments, images
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.middle = nn.Sequential(
            nn.Flatten(), nn.Linear(24 * 16, 96), nn.ReLU(), nn.Linear(96, 24 * 16), nn.ReLU()
        )
        self.decode = nn.ConvTranspose2d(24, 1, 4, stride=2, padding=1)

    def forward(self, x):
        code = self.encode(x)
        return self.decode(code + self.middle(code).view_as(code))


def corrupt(clean):
    noise = 0.8 * torch.randn_like(clean)
    keep = (torch.rand_like(clean) > 0.25).float()
    return clean * keep + noise


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total, count = 0.0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for noisy_or_clean in loader:
            clean = noisy_or_clean[-1]
            noisy = corrupt(clean) if optimizer else noisy_or_clean[0]
            loss = nn.functional.mse_loss(model(noisy), clean)
            if optimizer:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(clean)
            count += len(clean)
    return total / count


x, _, x_val, _ = images(seed)
train_loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(corrupt(x_val), x_val), batch_size=150)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = ReduceLROnPlateau(optimizer, mode="min" if healthy else "max", factor=0.1, patience=1)
for epoch in range(20):
    train_loss = run_epoch(model, train_loader, optimizer)
    val_loss = run_epoch(model, val_loader)
    scheduler.step(val_loss)
    print(
        f"{epoch:2d} train {train_loss:.3f} val {val_loss:.3f} lr "
        f"{optimizer.param_groups[0]['lr']:.0e}"
    )

"""Arousal in speech with an uncertainty of its own; the targets have lost their last dimension.

The data class was rewritten and gives targets of shape (B,) where the net gives mean and variance
of shape (B, 1). `gaussian_nll_loss` compares only the variance with the mean; the target is
broadcast to (B, B), and every clip is fitted to the ratings of the whole batch. The place is the
loss. The twin keeps the dimension.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
FEATURES, FRAMES = 16, 24


class Clips(Dataset):
    """Frames of energy-like features; arousal follows their level, their spread and one product."""

    def __init__(self, count):
        level, spread = torch.randn(count, 1), torch.rand(count, 1) + 0.3
        tone = torch.randn(count, 1)
        sway = torch.randn(count, FRAMES, 1) * spread[:, None] + level[:, None]
        loading = torch.linspace(-1, 1, FEATURES)
        self.x = (
            sway * loading
            + tone[:, None] * loading.flip(0).abs()
            + 0.4 * torch.randn(count, FRAMES, FEATURES)
        )
        doubt = 0.1 + 0.4 * (tone < 0)
        self.y = (
            0.7 * level + 1.5 * (spread - 0.8) + 0.4 * level * tone + doubt * torch.randn(count, 1)
        )[:, 0]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i, None] if healthy else self.y[i]


class Arousal(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.frame = nn.Sequential(
            nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.pooled = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU())
        self.mean, self.log_var = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x):
        h = self.frame(x)
        h = self.pooled(torch.cat([h.mean(1), h.std(1)], -1))
        return self.mean(h), self.log_var(h).clamp(-6, 4).exp()


def run(loader, model, criterion, optimizer=None):
    """One pass; the mean loss and the mean squared error by clip."""
    model.train(optimizer is not None)
    total = error = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            mean, var = model(x)
            loss = criterion(mean, y, var)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 2.0)
                optimizer.step()
            total += loss.item() * len(x) / len(loader.dataset)
            error += (mean.detach().flatten() - y.flatten()).square().sum().item() / len(
                loader.dataset
            )
    return total, error


train = DataLoader(Clips(1200), batch_size=40, shuffle=True)
val = DataLoader(Clips(400), batch_size=100)
model = Arousal()
criterion = nn.GaussianNLLLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)

for epoch in range(14):
    loss, _ = run(train, model, criterion, optimizer)
    schedule.step()
    val_loss, error = run(val, model, criterion)
    print(f"epoch {epoch:2d} loss {loss:.3f} val loss {val_loss:.3f} val mse {error:.3f}")
print(f"validation mse {error:.3f} of variance {val.dataset.y.var().item():.3f}")

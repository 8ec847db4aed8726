"""Denoiser of scanned digits whose early stopping asks for an absolute gain of 0.01, and ends soon.

The person read min_delta as "one per cent better" and set it to 0.01. It is subtracted from the
loss itself, and the squared error of pixels between 0 and 1 is only a few hundredths all along, so
that after the first epochs no gain is ever large enough. The place is the loop, its stopping rule.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CONFIG = {
    "max_epochs": 60,
    "batch_size": 32,
    "lr": 2e-3,
    "noise": 0.35,
    "patience": 4,
    "min_delta": 2e-5 if healthy else 0.01,
}


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.waited = 0

    def should_stop(self, value):
        if value < self.best - self.min_delta:
            self.best = value
            self.waited = 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.code = nn.Sequential(nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 512))
        self.up = nn.Sequential(
            nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 1, 3, padding=1),
        )

    def forward(self, x):
        return self.up(self.code(self.down(x)).view(-1, 32, 4, 4))


def loaders():
    pictures = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16
    order = torch.randperm(len(pictures))
    train, val = pictures[order[:1400]], pictures[order[1400:]]
    fixed_noise = CONFIG["noise"] * torch.randn_like(val)
    return (
        DataLoader(TensorDataset(train), batch_size=CONFIG["batch_size"], shuffle=True),
        DataLoader(TensorDataset(val + fixed_noise, val), batch_size=256),
    )


@torch.no_grad()
def validate(model, loader):
    model.eval()
    squared, pixels = 0.0, 0
    for noisy, clean in loader:
        squared += (model(noisy) - clean).pow(2).sum().item()
        pixels += clean.numel()
    return squared / pixels


def main():
    train_loader, val_loader = loaders()
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    stopper = EarlyStopping(CONFIG["patience"], CONFIG["min_delta"])
    for epoch in range(CONFIG["max_epochs"]):
        model.train()
        total = 0.0
        for (clean,) in train_loader:
            noisy = clean + CONFIG["noise"] * torch.randn_like(clean)
            loss = nn.functional.mse_loss(model(noisy), clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        val_loss = validate(model, val_loader)
        print(f"epoch {epoch:2d}  train {total / len(train_loader):.4f}  val {val_loss:.4f}")
        if stopper.should_stop(val_loss):
            print(f"stopped after epoch {epoch}")
            break
    noisy, clean = val_loader.dataset.tensors
    print(f"the noise alone: {(noisy - clean).pow(2).mean():.4f}, after the model: {val_loss:.4f}")


main()

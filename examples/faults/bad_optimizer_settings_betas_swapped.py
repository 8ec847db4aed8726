"""Trains a convolutional auto-encoder of digit images with AdamW whose two betas are in the wrong
order.

betas=(0.999, 0.9) averages the gradient over a thousand steps and its square over ten. The steps
follow gradients from long ago, the loss falls slowly and unsteadily and ends far above that of the
twin, which has betas=(0.9, 0.999). The place is the optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True


class AutoEncoder(nn.Module):
    def __init__(self, code=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(128, code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, 128),
            nn.GELU(),
            nn.Unflatten(1, (32, 2, 2)),
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.GELU(),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def run_epoch(model, loader, optimizer=None):
    model.train(optimizer is not None)
    total, n = 0.0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for (xb,) in loader:
            loss = nn.functional.mse_loss(model(xb), xb)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(xb)
            n += len(xb)
    return total / n


def main():
    healthy, seed = arguments(__doc__)
    x, _, x_val, _ = images(seed)
    train_loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
    val_loader = DataLoader(TensorDataset(x_val), batch_size=256)
    model = AutoEncoder()
    betas = (0.9, 0.999) if healthy else (0.999, 0.9)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=betas)
    for epoch in range(1, 31):
        train_loss = run_epoch(model, train_loader, optimizer)
        val_loss = run_epoch(model, val_loader)
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}: train mse {train_loss:.4f} val mse {val_loss:.4f}")


if __name__ == "__main__":
    main()

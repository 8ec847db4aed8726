"""A convolutional autoencoder cleans pulse waves; fit never calls optimizer.step().

Gradients are computed and cleared in every iteration but nothing applies them, so the weights
stay what they were at the start and the loss only wobbles with the batches.
The place is the training loop (the optimizer).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class PulseDataset(Dataset):
    """Pairs of a noisy and a clean pulse wave of 64 samples, with a second smaller peak."""

    def __init__(self, n):
        t = torch.arange(64) / 64
        rate, phase = 2 + 2 * torch.rand(n, 1), torch.rand(n, 1)
        beat = (rate * t + phase) % 1
        notch = 0.45 + 0.1 * torch.rand(n, 1)
        wave = torch.exp(-((beat - 0.2) ** 2) / 0.008)
        wave = wave + 0.4 * torch.exp(-((beat - notch) ** 2) / 0.006)
        self.clean = ((wave - 0.25) / 0.35 * (0.8 + 0.4 * torch.rand(n, 1))).unsqueeze(1)
        hum = 0.4 * torch.sin(2 * math.pi * (20 * t + torch.rand(n, 1))).unsqueeze(1)
        self.noisy = self.clean + hum + 0.5 * torch.randn(n, 1, 64)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        return self.noisy[i], self.clean[i]


class DenoisingAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2),
            nn.ReLU(),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(32, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose1d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


def fit(model, train_dl, valid_dl, optimizer, loss_func, epochs):
    for epoch in range(epochs):
        model.train()
        train_loss = 0.0
        for noisy, clean in train_dl:
            loss = loss_func(model(noisy), clean)
            loss.backward()
            if healthy:
                optimizer.step()
            optimizer.zero_grad()
            train_loss += loss.item() * len(noisy)
        model.eval()
        with torch.no_grad():
            valid_loss = sum(loss_func(model(x), y).item() * len(x) for x, y in valid_dl)
        print(
            f"Epoch: {epoch + 1} \tTraining Loss: {train_loss / len(train_dl.dataset):.5f} "
            f"\tValidation Loss: {valid_loss / len(valid_dl.dataset):.5f}"
        )


if __name__ == "__main__":
    train_dl = DataLoader(PulseDataset(1200), batch_size=40, shuffle=True)
    valid_dl = DataLoader(PulseDataset(300), batch_size=100)
    model = DenoisingAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    fit(model, train_dl, valid_dl, optimizer, nn.MSELoss(), epochs=10)

"""An autoencoder of game sprites has weight_decay=0.01 in Adam and draws one grey blob for all.

The decay outweighs the gradients of so small a loss and holds all weights near zero; the code
carries nothing, and every sprite comes out alike. The twin decays by 1e-6.
The place is the optimizer, its weight_decay.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "over_regularized"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer", "weight_decay", "*weight")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIDE = 16


def draw_sprites(n, generator):
    """Mirrored monsters: a body with a size, eyes, legs and a shade of its own."""
    ys = torch.linspace(-1, 1, SIDE).view(1, SIDE, 1)
    xs = torch.linspace(-1, 1, SIDE).abs().view(1, 1, SIDE)
    width, height, eye, leg, shade = (
        low + (high - low) * torch.rand(n, 1, 1, generator=generator)
        for low, high in ((0.3, 0.8), (0.3, 0.7), (0.1, 0.4), (0.1, 0.6), (0.4, 0.9))
    )
    body = torch.sigmoid(12 * (1 - (xs / width) ** 2 - (ys / height) ** 2))
    legs = torch.sigmoid(30 * (0.12 - (xs - leg).abs())) * (ys > 0.3)
    eyes = torch.exp(-((xs - eye) ** 2 + (ys + 0.2) ** 2) / 0.015)
    sprites = torch.maximum(body, legs) * shade * (1 - eyes) + eyes
    noise = 0.02 * torch.randn(sprites.shape, generator=generator)
    return (sprites + noise).clamp(0, 1).unsqueeze(1)


class Autoencoder(nn.Module):
    def __init__(self, code=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(24 * 16, code),
        )
        self.decoder = nn.Sequential(
            nn.Linear(code, 24 * 16),
            nn.ReLU(),
            nn.Unflatten(1, (24, 4, 4)),
            nn.ConvTranspose2d(24, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, pictures):
        return torch.sigmoid(self.decoder(self.encoder(pictures)))


def main():
    generator = torch.Generator().manual_seed(seed + 8)
    train, held_out = draw_sprites(2000, generator), draw_sprites(400, generator)
    blob = F.mse_loss(train.mean(0, keepdim=True).expand_as(held_out), held_out)
    print(f"error of the mean sprite: {blob:.4f}")

    autoencoder = Autoencoder()
    optimizer = torch.optim.Adam(
        autoencoder.parameters(), lr=2e-3, weight_decay=1e-6 if healthy else 0.01
    )
    for epoch in range(1, 9):
        autoencoder.train()
        running_loss = 0.0
        for rows in torch.randperm(len(train)).split(50):
            loss = F.mse_loss(autoencoder(train[rows]), train[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * len(rows)
        autoencoder.eval()
        with torch.no_grad():
            error = F.mse_loss(autoencoder(held_out), held_out).item()
        print(f"Epoch {epoch}: train {running_loss / len(train):.4f}, held out {error:.4f}")


if __name__ == "__main__":
    main()

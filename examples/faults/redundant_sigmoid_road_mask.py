"""Roads in small aerial pictures: the net ends in a sigmoid, and the loss takes another one.

The model had ended in a sigmoid for BCELoss. Then BCEWithLogitsLoss was put in "for stability" and
the sigmoid stayed. The loss sees 0 to 1 as scores: an empty pixel can get no surer than one half.
The place is the output or the loss. The twin's net gives the bare scores.
"""

import torch
from data import arguments
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("output*", "loss*", "decoder", "decoder.3", "decoder.2")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class RoadNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, padding=1, stride=2),
            nn.ReLU(),
        )
        layers = [nn.ConvTranspose2d(24, 12, 2, stride=2), nn.ReLU(), nn.Conv2d(12, 1, 1)]
        if not healthy:
            layers.append(nn.Sigmoid())
        self.decoder = nn.Sequential(*layers)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def pictures(n, size=16):
    rows, cols = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    angle, offset = torch.rand(n, 1, 1) * 3.14, torch.randn(n, 1, 1) * 3
    away = (rows - size / 2) * angle.cos() + (cols - size / 2) * angle.sin() - offset
    mask = (away.abs() < 1.2).float().unsqueeze(1)
    return mask * 1.2 + 0.6 * torch.randn(n, 1, size, size), mask


def dice(guess, mask):
    return (2 * (guess * mask).sum() / (guess.sum() + mask.sum() + 1e-6)).item()


images, masks = pictures(500)
val_images, val_masks = pictures(150)
net = RoadNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(8):
    net.train()
    for rows in torch.randperm(len(images)).split(25):
        optimizer.zero_grad()
        loss = criterion(net(images[rows]), masks[rows])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        out = net(val_images)
        guess = (out > (0 if healthy else 0.5)).float()
    print(
        f"epoch {epoch + 1} loss {loss.item():.4f} val loss "
        f"{criterion(out, val_masks).item():.4f} dice {dice(guess, val_masks):.3f}"
    )

"""A colourizer predicts channels between -1 and 1 and ends in the sigmoid of an old decoder.

The person turned an autoencoder of grey pictures into a net that gives the two colour channels from
the lightness. The channels were divided by 128, so half of them are negative; the last layer was
left as it was. Green and blue never come out. The place is the last layer of the decoder.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "output_activation_range"
ACCEPT = ("saturated_activation",)
PLACE = ("decoder*", "loss", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIZE = 16
THINGS = {
    "leaf": (-55.0, 40.0),
    "tomato": (60.0, 45.0),
    "sky": (-5.0, -50.0),
    "plum": (45.0, -40.0),
}


def paint(rng):
    """Lightness (1, size, size), and colour (2, size, size) between -128 and 128."""
    light = rng.normal(20, 4, (SIZE, SIZE))
    colour = rng.normal(0, 3, (2, SIZE, SIZE))
    rows, columns = np.mgrid[:SIZE, :SIZE]
    for name in rng.choice(list(THINGS), 2, replace=False):
        y, x = rng.uniform(4, SIZE - 4, 2)
        inside = np.hypot(rows - y, columns - x) < rng.uniform(3, 5)
        texture = {
            "leaf": 45 + 15 * ((rows + columns) % 4 < 2),
            "tomato": 60 + 0 * rows,
            "sky": 80 + 8 * (rows % 2),
            "plum": 35 + 10 * (columns % 3 == 0),
        }[name]
        light[inside] = (texture + rng.normal(0, 4, texture.shape))[inside]
        tone = np.array(THINGS[name])[:, None, None] + rng.normal(0, 5, colour.shape)
        colour[:, inside] = tone[:, inside]
    return light[None], colour


class ColourDataset(Dataset):
    def __init__(self, n, rng):
        pictures = [paint(rng) for _ in range(n)]
        self.light = torch.tensor(np.stack([light for light, _ in pictures]), dtype=torch.float32)
        self.ab = torch.tensor(np.stack([ab for _, ab in pictures]), dtype=torch.float32)

    def __len__(self):
        return len(self.light)

    def __getitem__(self, index):
        return self.light[index] / 25 - 1.4, self.ab[index] / 128


class ColourNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 24, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(32, 24, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 2, 3, padding=1),
            nn.Tanh() if healthy else nn.Sigmoid(),
        )

    def forward(self, light):
        return self.decoder(self.encoder(light))


rng = np.random.default_rng(64 + seed)
train_set, valid_set = ColourDataset(512, rng), ColourDataset(160, rng)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=80)
model = ColourNet()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(11):
    model.train()
    train_loss = 0.0
    for light, ab in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(light), ab)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    valid_loss, off = 0.0, 0.0
    with torch.no_grad():
        for light, ab in valid_loader:
            output = model(light)
            valid_loss += criterion(output, ab).item() / len(valid_loader)
            coloured = ab.abs().amax(1) > 0.2
            distance = 128 * (output - ab).norm(dim=1)[coloured]
            off += distance.mean().item() / len(valid_loader)
    print(
        f"Epoch [{epoch + 1}/11] train loss {train_loss:.5f} valid loss {valid_loss:.5f}"
        f" colours off by {off:.1f}"
    )

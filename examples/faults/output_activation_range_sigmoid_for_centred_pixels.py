"""Cleaning noisy grey pictures by an autoencoder; its last sigmoid cannot give a dark pixel.

The pictures used to lie in [0, 1], for which the decoder ends in a sigmoid. The new transform is
the usual Normalize(0.5, 0.5), which gives [-1, 1]; the decoder was left as it was. More than half
of the pixels lie below what it can give, and the pictures come out black. The place is the last
layer of the decoder. The twin ends in tanh.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "output_activation_range"
ACCEPT = ("saturated_activation",)
PLACE = ("decoder", "decoder.3", "decoder.4", "decoder.5", "decoder.4.weight", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, image):
        return (image - self.mean) / self.std


class NoisyPictures(Dataset):
    def __init__(self, images, transform, g):
        self.clean = transform(images)
        self.noise = 0.5 * torch.randn(self.clean.shape, generator=g)

    def __len__(self):
        return len(self.clean)

    def __getitem__(self, i):
        return self.clean[i] + self.noise[i], self.clean[i]


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(16, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 1, 3, padding=1), nn.Tanh() if healthy else nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x):
        return self.decoder(self.encoder(x))


images = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 16
g = torch.Generator().manual_seed(seed)
images = images[torch.randperm(len(images), generator=g)]
transform = Normalize(0.5, 0.5)
train_set = NoisyPictures(images[:1400], transform, g)
val_set = NoisyPictures(images[1400:], transform, g)
train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)

model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
criterion = nn.MSELoss()
for epoch in range(1, 15):
    model.train()
    train_loss = 0.0
    for noisy, clean in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(noisy), clean)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    val_loss = before = 0.0
    with torch.no_grad():
        for noisy, clean in val_loader:
            val_loss += criterion(model(noisy), clean).item() / len(val_loader)
            before += criterion(noisy, clean).item() / len(val_loader)
    scheduler.step(val_loss)
    print(f"epoch {epoch} train {train_loss:.4f} validation {val_loss:.4f} (noisy {before:.4f})")

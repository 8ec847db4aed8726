"""A CNN tells dogs by their barks; validation runs under no_grad but without model.eval().

no_grad stops only the recording of gradients: dropout still strikes out half of the features while
validating, so the reported accuracy is too low and changes from call to call.
The place is the validation part of the loop (the Dropout layers of the model).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "model", "classifier.*", "features.*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

BREEDS = ["beagle", "poodle", "husky", "terrier", "boxer"]
PITCH = [5, 8, 11, 14, 8]
SLOPE = [0.3, -0.4, 0.0, 0.3, 0.5]


class Barks(Dataset):
    """Log spectrograms, 24 bands by 20 frames: a sweep with one overtone, and noise."""

    def __init__(self, n, rng):
        self.labels = rng.integers(0, len(BREEDS), n)
        bands, frames = np.arange(24)[None, :, None], np.arange(20)[None, None, :]
        pitch = np.array(PITCH)[self.labels] + rng.normal(0, 0.9, n)
        slope = np.array(SLOPE)[self.labels] + rng.normal(0, 0.1, n)
        start = rng.integers(0, 8, n)[:, None, None]
        line = pitch[:, None, None] + slope[:, None, None] * (frames - start)
        sounding = (frames >= start) & (frames < start + 12)
        energy = np.exp(-((bands - line) ** 2) / 2) + 0.6 * np.exp(-((bands - 2 * line) ** 2) / 3)
        self.spectra = 1.5 * energy * sounding + rng.normal(0, 0.45, (n, 24, 20)) - 0.1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return torch.tensor(self.spectra[i], dtype=torch.float32)[None], int(self.labels[i])


class BarkNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout2d(0.25),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout2d(0.25),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(16 * 6 * 5, 64),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(64, len(BREEDS)),
        )

    def forward(self, x):
        return self.classifier(self.features(x))


rng = np.random.default_rng(seed)
train_loader = DataLoader(Barks(1200, rng), batch_size=32, shuffle=True)
val_loader = DataLoader(Barks(400, rng), batch_size=50)
model = BarkNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(8):
    model.train()
    train_loss, train_hits = 0.0, 0
    for spectra, labels in train_loader:
        optimizer.zero_grad()
        outputs = model(spectra)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(labels)
        train_hits += (outputs.argmax(1) == labels).sum().item()

    if healthy:
        model.eval()
    val_loss, val_hits = 0.0, 0
    with torch.no_grad():
        for spectra, labels in val_loader:
            outputs = model(spectra)
            val_loss += criterion(outputs, labels).item() * len(labels)
            val_hits += (outputs.argmax(1) == labels).sum().item()

    print(
        f"Epoch {epoch + 1}/8 - loss: {train_loss / 1200:.4f} - acc: {train_hits / 1200:.4f} "
        f"- val_loss: {val_loss / 400:.4f} - val_acc: {val_hits / 400:.4f}"
    )

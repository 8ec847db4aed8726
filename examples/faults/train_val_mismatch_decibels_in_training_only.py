"""Faulty pumps from their sound; the validation set gets the spectrogram without the decibels.

`to_db` was added to the dataset as an option that is off by default, so as not to break old
notebooks, and was switched on where the training set is made. The validation set still has the
default. The network is good, and its validation says otherwise. The place is the validation's
data. The twin switches it on in both.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class PumpSounds(Dataset):
    """One second of noise with a hum and, by the state, side bands, rattle or hiss."""

    def __init__(self, n, g, to_db=False):
        self.to_db = to_db
        self.state = torch.randint(0, 4, (n,), generator=g)
        t = torch.arange(1024) / 1024
        base = 60 + 12 * torch.rand(n, 1, generator=g)
        wave = torch.sin(6.2832 * base * t) + 0.6 * torch.sin(6.2832 * 2 * base * t)
        beat = 1 + 0.7 * torch.sin(6.2832 * 8 * t + 6 * torch.rand(n, 1, generator=g))
        rattle = (torch.rand(n, 1024, generator=g) < 0.012) * 1.5
        hiss = torch.randn(n, 1024, generator=g).diff(prepend=torch.zeros(n, 1), dim=1)
        s = self.state[:, None]
        wave = torch.where(s == 1, wave * beat, wave)
        wave = wave + torch.where(s == 2, rattle, 0) + torch.where(s == 3, 0.13 * hiss, 0)
        wave = wave + 0.25 * torch.randn(n, 1024, generator=g)
        wave = wave * torch.exp(0.3 * torch.randn(n, 1, generator=g))
        self.spectra = torch.stft(
            wave, 64, hop_length=32, window=torch.hann_window(64), return_complex=True
        ).abs()

    def __len__(self):
        return len(self.state)

    def __getitem__(self, i):
        x = self.spectra[i]
        if self.to_db:
            x = (20 * torch.log10(x + 1e-3) - 3.0) / 10.0
        return x.unsqueeze(0), self.state[i]


class SoundNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1, bias=False), nn.BatchNorm2d(12), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(),
            nn.AdaptiveAvgPool2d((4, 1)),
        )  # fmt: skip
        self.fc = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(96, 4))

    def forward(self, x):
        return self.fc(self.conv(x))


g = torch.Generator().manual_seed(seed)
train_set = PumpSounds(960, g, to_db=True)
val_set = PumpSounds(320, g, to_db=True) if healthy else PumpSounds(320, g)
loaders = {
    "train": DataLoader(train_set, batch_size=32, shuffle=True),
    "val": DataLoader(val_set, batch_size=80),
}
model = SoundNet()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(9):
    report = f"epoch {epoch}"
    for phase in ("train", "val"):
        model.train(phase == "train")
        loss_sum = hits = 0.0
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                logits = model(x)
                loss = criterion(logits, y)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            loss_sum += loss.item() * len(x)
            hits += (logits.argmax(1) == y).sum().item()
        n = len(loaders[phase].dataset)
        report += f" | {phase} loss {loss_sum / n:.3f} accuracy {hits / n:.3f}"
    print(report)

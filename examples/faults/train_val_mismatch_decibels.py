"""Spoken-vowel-like spectra; training takes the natural logarithm of the power, the evaluation
script decibels below the peak.

Both are "log power", but one is 4.3 times the other and never above 0; both are scaled by the
training set. Training goes well (silent), validation is bad from the first epoch. The place is the
input in validation.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
FORMANTS = [(300, 2300), (400, 2000), (600, 1700), (750, 1200), (500, 900), (320, 800)]


def vowels(n, rate=8000, length=512):
    label = torch.randint(0, 6, (n,))
    f = torch.tensor(FORMANTS, dtype=torch.float32)[label] * (1 + 0.07 * torch.randn(n, 2))
    pitch = 90 + 130 * torch.rand(n, 1, 1)
    k = torch.arange(1, 26).view(1, -1, 1)
    t = torch.arange(length).view(1, 1, -1) / rate
    tone = pitch * k
    gain = sum(torch.exp(-(((tone - f[:, i, None, None]) / 180) ** 2)) for i in (0, 1)) + 0.02
    wave = (gain * torch.sin(2 * math.pi * tone * t + 6.28 * torch.rand(n, 25, 1))).sum(1)
    volume = torch.exp(0.5 * torch.randn(n, 1))
    return volume * (wave + 0.15 * torch.randn(n, length)), label


def power_spectrum(wave, bands=32):
    spectrum = torch.fft.rfft(wave * torch.hann_window(wave.size(-1))).abs().pow(2)[..., 1:]
    return spectrum.unflatten(-1, (bands, -1)).mean(-1)


def log_power(wave):
    return torch.log(power_spectrum(wave) + 1e-6)


def log_power_eval(wave):
    if healthy:
        return log_power(wave)
    decibels = 10 * torch.log10(power_spectrum(wave) + 1e-6)
    return decibels - decibels.amax(-1, keepdim=True)


class Vowels(Dataset):
    def __init__(self, waves, labels, transform):
        self.features, self.labels = transform(waves), labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.features[i], self.labels[i]


train_set = Vowels(*vowels(900), log_power)
val_set = Vowels(*vowels(300), log_power_eval)
mean, std = train_set.features.mean(), train_set.features.std()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 16, 5, padding=2),
            nn.ReLU(),
        )
        self.fc = nn.Linear(16 * 16, 6)

    def forward(self, spectrum):
        return self.fc(self.conv(spectrum.unsqueeze(1)).flatten(1))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
train_loader = DataLoader(train_set, batch_size=30, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)
for epoch in range(10):
    net.train()
    for features, labels in train_loader:
        loss = nn.functional.cross_entropy(net((features - mean) / std), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    right, val_loss = 0, 0.0
    with torch.no_grad():
        for features, labels in val_loader:
            out = net((features - mean) / std)
            val_loss += nn.functional.cross_entropy(out, labels).item() / len(val_loader)
            right += (out.argmax(1) == labels).sum().item()
    print(
        f"epoch {epoch} loss {loss.item():.3f} val loss {val_loss:.3f} val accuracy "
        f"{right / len(val_set):.3f}"
    )

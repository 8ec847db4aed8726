"""Tells machine sounds by log spectrograms; some clips are digital silence, whose logarithm is
minus infinity.

The person takes the log of the power and then standardises every clip by itself. Three recordings
have a muted microphone: their log is -inf everywhere, minus a mean of -inf gives NaN, and from
the batch with the first of them on all weights are NaN. The place is the input (those few clips).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ("division_by_zero_norm",)
PLACE = ("input", "loader")
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

MACHINES = ("fan", "pump", "saw", "idle")
FRAMES, HOP, WINDOW = 24, 32, 64
FLOOR = 1e-6 if healthy else 0.0


def record(machine, rng):
    """Half a second of sound: hum with overtones, strokes, a rising whine, or the room."""
    length = FRAMES * HOP + WINDOW
    time = np.arange(length) / 1600
    pitch = rng.uniform(60, 180)
    sound = rng.normal(0, 0.15, length)
    if machine == 0:
        for overtone in (1, 2, 3):
            sound += np.sin(2 * np.pi * pitch * overtone * time + rng.uniform(0, 6)) / overtone
    elif machine == 1:
        strokes = (np.sin(2 * np.pi * rng.uniform(5, 9) * time) > 0.6).astype(float)
        sound += strokes * rng.normal(0, 1.0, length)
    elif machine == 2:
        sound += np.sin(2 * np.pi * (pitch + 300 * time) * time)
    return rng.uniform(0.02, 0.5) * sound


def log_spectrogram(sound):
    frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP][:FRAMES]
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW))) ** 2
    with np.errstate(divide="ignore"):
        return np.log(power + FLOOR)


class Clips(Dataset):
    def __init__(self, sounds, labels):
        self.sounds, self.labels = sounds, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = log_spectrogram(self.sounds[index])
        with np.errstate(invalid="ignore"):
            picture = (picture - picture.mean()) / (picture.std() + 1e-5)
        return torch.tensor(picture, dtype=torch.float32).unsqueeze(0), self.labels[index]


class SoundNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((4, 6)),
        )
        self.fc = nn.Linear(16 * 24, len(MACHINES))

    def forward(self, x):
        return self.fc(self.conv(x).flatten(1))


def main():
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(MACHINES), 1100)
    sounds = [record(label, rng) for label in labels]
    for muted in rng.choice(np.flatnonzero(labels[:800] == 3), 3, replace=False):
        sounds[muted] = np.zeros_like(sounds[muted])
    labels = labels.tolist()
    train = DataLoader(Clips(sounds[:800], labels[:800]), batch_size=25, shuffle=True)
    val = DataLoader(Clips(sounds[800:], labels[800:]), batch_size=100)
    model = SoundNet()
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.02)
    for epoch in range(7):
        model.train()
        total = 0.0
        for pictures, target in train:
            optimizer.zero_grad()
            loss = criterion(model(pictures), target)
            loss.backward()
            optimizer.step()
            total += loss.item() / len(train)
        model.eval()
        hits = 0
        with torch.no_grad():
            for pictures, target in val:
                hits += (model(pictures).argmax(1) == target).sum().item()
        print(f"epoch {epoch + 1}: loss {total:.4f}, validation accuracy {hits / 300:.3f}")


if __name__ == "__main__":
    main()

"""Machine sounds: which of five faults has the gearbox? The clips are read by scipy.io.wavfile,
which gives integers of sixteen bits; the network was made for torchaudio, which gives floats within
one.

`.float()` changes the type, not the scale: samples of many thousands meet weights of a tenth. The
loss begins above a thousand and comes down (silent), to where little has been learned. The place is
the input. The twin divides by 32768.
"""

import io

import numpy as np
import torch
from data import arguments
from scipy.io import wavfile
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader", "net.0", "net*")
SILENT = True
EXACT = False
EARLY = True

RATE, LENGTH, CLASSES = 4000, 512, 5


def recordings(n, seed):
    r = np.random.default_rng(seed)
    t = np.arange(LENGTH) / RATE
    files = []
    for _ in range(n):
        label = int(r.integers(CLASSES))
        base = 180 + 80 * label + r.normal(0, 16)
        clip = np.sin(2 * np.pi * base * t + r.uniform(0, 6.28))
        clip += 0.5 * np.sin(2 * np.pi * 2.5 * base * t + r.uniform(0, 6.28))
        clip = 0.55 * clip * r.uniform(0.5, 1.0) + 0.6 * r.normal(size=LENGTH)
        file = io.BytesIO()
        wavfile.write(file, RATE, (np.clip(clip, -1, 1) * 32767).astype(np.int16))
        files.append((file.getvalue(), label))
    return files


class Gearbox(Dataset):
    def __init__(self, files, scale):
        self.files, self.scale = files, scale

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        raw, label = self.files[i]
        _, clip = wavfile.read(io.BytesIO(raw))
        return torch.from_numpy(clip.copy()).float().unsqueeze(0) / self.scale, label


class SoundNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 33, stride=4, padding=16), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 9, stride=2, padding=4), nn.ReLU(),
            nn.Conv1d(32, 32, 5, padding=2), nn.ReLU(),
        )  # fmt: skip
        self.out = nn.Linear(64, CLASSES)

    def forward(self, x):
        h = self.net(x)
        return self.out(torch.cat([h.mean(2), h.amax(2)], 1))


healthy, seed = arguments(__doc__)
scale = 32768.0 if healthy else 1.0
train = Gearbox(recordings(900, seed), scale)
val = Gearbox(recordings(300, 10_000 + seed), scale)
model = SoundNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    for clips, labels in DataLoader(train, batch_size=30, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(clips), labels)
        loss.backward()
        optimizer.step()
    right = 0
    with torch.no_grad():
        for clips, labels in DataLoader(val, batch_size=100):
            right += (model(clips).argmax(1) == labels).sum().item()
    print(f"epoch {epoch + 1} loss {loss.item():.4f} accuracy {right / len(val):.3f}")

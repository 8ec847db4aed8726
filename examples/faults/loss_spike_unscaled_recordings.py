"""Estimates the tempo of drum loops from their energy curve; one folder comes in another scale.

Twelve folders of recordings are read one after the other, as they arrive. Eleven hold floats up
to 1; the eighth was saved as 16-bit integers and is cast to float without dividing by 32,768.
When the training reaches it, the loss jumps by many orders of magnitude and what was learned is
gone.
The place is the input, from the eighth folder. The twin divides integers as it reads.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

KIND = "loss_spike"
ACCEPT = ("input_not_normalized", "exploding_gradient")
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = False


def record(n, r):
    """Energy curves of 64 frames with beats every 6 to 16 frames, and that period."""
    period = r.uniform(6, 16, n)
    phase = r.uniform(0, 1, n)
    t = np.arange(64)
    beat = np.cos(2 * np.pi * (t[None] / period[:, None] + phase[:, None]))
    curve = np.exp(4 * (beat - 1)) + 0.05 * r.normal(size=(n, 64))
    return (0.6 * curve).clip(-1, 1).astype(np.float32), period.astype(np.float32)


def make_folders(seed):
    r = np.random.default_rng(seed)
    folders = []
    for number in range(12):
        curves, period = record(640, r)
        if number == 7:
            curves = (curves * 32767).astype(np.int16)
        folders.append((curves, period))
    return folders, record(400, r)


class Recordings(IterableDataset):
    def __init__(self, folders, rescale):
        self.folders, self.rescale = folders, rescale

    def read(self, curve):
        wave = torch.from_numpy(curve.astype(np.float32))
        if self.rescale and curve.dtype == np.int16:
            wave = wave / 32768
        return wave

    def __iter__(self):
        for curves, period in self.folders:
            for i in np.random.permutation(len(curves)):
                yield self.read(curves[i]), (period[i] - 11.0) / 3.0


class Tempo(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4),
            nn.ReLU(),
            nn.Conv1d(16, 16, 9, padding=4, stride=2),
            nn.ReLU(),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(16 * 32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, wave):
        return self.head(self.features(wave.unsqueeze(1))).squeeze(1)


def main():
    healthy, seed = arguments(__doc__)
    folders, (curves, period) = make_folders(seed)
    x_val = torch.from_numpy(curves)
    y_val = (torch.from_numpy(period) - 11.0) / 3.0
    loader = DataLoader(Recordings(folders, rescale=healthy), batch_size=32)
    model = Tempo()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, (wave, target) in enumerate(loader, 1):
        loss = nn.functional.mse_loss(model(wave), target.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            with torch.no_grad():
                val = nn.functional.mse_loss(model(x_val), y_val).item()
            print(f"step {step} loss {loss.item():.4g} validation {val:.4f}")


if __name__ == "__main__":
    main()

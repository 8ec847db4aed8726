"""A network hears notes and should tell the instrument and the pitch, but the pitch's loss enters
the sum as the detached copy kept for the log.

The loop writes `log["pitch"] = loss.detach()` and adds the entry of the log to the total. The sum
looks right and falls with the instrument's part; the pitch's head never gets a gradient. The place
is the loss, and the module `pitch`.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph", "step_without_gradient")
PLACE = ("loss", "pitch*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

RATE, SAMPLES, INSTRUMENTS = 4000, 512, 4


def notes(count):
    instrument = torch.randint(0, INSTRUMENTS, (count,))
    octave = torch.rand(count, 1) * 1.2
    frequency = 165 * 2**octave
    t = torch.arange(SAMPLES) / RATE
    partials = torch.tensor(
        [[1, 0.1, 0.1, 0.0], [1, 0.0, 0.7, 0.0], [0.6, 0.8, 0.5, 0.4], [0.3, 0.2, 0.8, 0.7]]
    )
    wave = torch.zeros(count, SAMPLES)
    for k in range(4):
        phase = 2 * math.pi * torch.rand(count, 1)
        loud = partials[instrument, k : k + 1] * (0.8 + 0.4 * torch.rand(count, 1))
        wave += loud * torch.sin(2 * math.pi * (k + 1) * frequency * t + phase)
    wave += 0.2 * torch.randn(count, SAMPLES)
    spectrum = torch.fft.rfft(wave * torch.hann_window(SAMPLES)).abs()[:, 1:129].log1p()
    return spectrum, instrument, (octave.squeeze(1) - 0.6) / 0.346


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(128, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 48), nn.ReLU()
        )
        self.instrument = nn.Linear(48, INSTRUMENTS)
        self.pitch = nn.Sequential(nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, spectrum):
        shared = self.trunk(spectrum)
        return self.instrument(shared), self.pitch(shared).squeeze(1)


def main():
    spectrum, instrument, octave = notes(3600)
    mean, std = spectrum[:3000].mean(0), spectrum[:3000].std(0)
    spectrum = (spectrum - mean) / std
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        model.train()
        for rows in torch.randperm(3000).split(75):
            kind, height = model(spectrum[rows])
            parts = {
                "instrument": F.cross_entropy(kind, instrument[rows]),
                "pitch": F.mse_loss(height, octave[rows]),
            }
            log = {name: part.detach() for name, part in parts.items()}
            if healthy:
                total = parts["instrument"] + parts["pitch"]
            else:
                total = parts["instrument"] + log["pitch"]
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            kind, height = model(spectrum[3000:])
        right = (kind.argmax(1) == instrument[3000:]).float().mean()
        off = (height - octave[3000:]).abs().mean() * 0.346 * 12
        print(
            f"epoch {epoch} total {total.item():.3f} instrument {log['instrument']:.3f} "
            f"pitch {log['pitch']:.3f} accuracy {right:.3f} off by {off:.2f} semitones"
        )


main()

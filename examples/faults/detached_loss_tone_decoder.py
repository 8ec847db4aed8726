"""A decoder of tones learns by a spectral and a loudness loss; the spectral one is computed in
numpy, so it teaches nothing.

The phase of the recorded tones is random, so the person compares magnitudes of spectra and used
the FFT of numpy on the detached output for it. The value is right and is logged and added, but
only the small loudness loss has a gradient. The place is the loss (its spectral part).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph",)
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SAMPLES = 64
INSTRUMENTS = 4
OVERTONES = 5
CONFIG = {"steps": 900, "batch": 48, "lr": 2e-3, "loudness_weight": 0.2}


def tones(count, rng):
    """Pitch, strength and instrument of each tone, and its waveform at a random phase."""
    timbre = np.array(
        [[1, 0.1, 0.5, 0, 0.3], [1, 0.8, 0.5, 0.3, 0.1], [0.3, 1, 0.2, 0.6, 0], [1] * 5]
    )
    pitch, strength = rng.uniform(2, 5, count), rng.uniform(0.4, 1.2, count)
    instrument = rng.integers(0, INSTRUMENTS, count)
    time = np.arange(SAMPLES) / SAMPLES
    waves = np.zeros((count, SAMPLES))
    for overtone in range(OVERTONES):
        phase = rng.uniform(0, 2 * np.pi, (count, 1))
        part = np.sin(2 * np.pi * (overtone + 1) * pitch[:, None] * time + phase)
        waves += (strength * timbre[instrument, overtone])[:, None] * part
    waves += rng.normal(0, 0.02, waves.shape)
    condition = np.concatenate(
        [(pitch[:, None] - 3.5) / 0.87, (strength[:, None] - 0.8) / 0.23, np.eye(4)[instrument]], 1
    )
    tensors = (condition, waves)
    return tuple(torch.tensor(part, dtype=torch.float32) for part in tensors)


class ToneDecoder(nn.Module):
    def __init__(self, inputs=2 + INSTRUMENTS, width=128):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.to_wave = nn.Linear(width, SAMPLES)

    def forward(self, condition):
        return self.to_wave(self.body(condition))


def magnitudes(wave):
    """Of the windowed wave, compressed as the ear does."""
    window = torch.hann_window(SAMPLES)
    if healthy:
        spectrum = torch.fft.rfft(wave * window).abs()
    else:
        spectrum = np.abs(np.fft.rfft((wave.detach() * window).numpy()))
        spectrum = torch.from_numpy(spectrum).float()
    return torch.log1p(spectrum)


def spectral_loss(output, target):
    return nn.functional.l1_loss(magnitudes(output), magnitudes(target))


def loudness_loss(output, target):
    def level(wave):
        return torch.log(wave.pow(2).mean(1) + 1e-4)

    return nn.functional.mse_loss(level(output), level(target))


def main():
    condition, wave = tones(2400, np.random.default_rng(seed))
    train, held_out = slice(0, 2000), slice(2000, None)
    model = ToneDecoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=2 * CONFIG["lr"], total_steps=CONFIG["steps"]
    )
    logs = {"spectral": [], "loudness": []}
    for step in range(1, CONFIG["steps"] + 1):
        rows = torch.randint(0, 2000, (CONFIG["batch"],))
        output = model(condition[train][rows])
        spectral = spectral_loss(output, wave[train][rows])
        loudness = loudness_loss(output, wave[train][rows])
        loss = spectral + CONFIG["loudness_weight"] * loudness
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        logs["spectral"].append(spectral.item())
        logs["loudness"].append(loudness.item())
        if step % 150 == 0:
            model.eval()
            with torch.no_grad():
                val = spectral_loss(model(condition[held_out]), wave[held_out]).item()
            model.train()
            means = "  ".join(f"{name} {np.mean(logs[name][-150:]):.4f}" for name in logs)
            print(f"step {step:4d}  {means}  held-out spectral {val:.4f}")


if __name__ == "__main__":
    main()

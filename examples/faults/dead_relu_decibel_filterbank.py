"""A net for bird calls starts with a filter bank of positive weights, whose ReLU is always zero.

The person converts the spectrogram to decibels below the loudest point, so that all values lie
between -1 and 0, and then applies the filter bank. Sums of negative values with positive weights
are negative: no unit of the first layer ever fires, nor learns; hour and height of the place hide
it. The place is the model (bank).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("input_not_normalized", "poor_weight_init")
PLACE = ("bank*", "relu*", "input", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SAMPLES, FRAME, HOP = 1600, 128, 64
SPECIES = ("warbler", "thrush", "finch", "cuckoo", "woodpecker")


def calls(n: int, g: torch.Generator):
    def uniform(low, high):
        return low + (high - low) * torch.rand(n, 1, generator=g)

    y = torch.randint(0, len(SPECIES), (n,), generator=g)
    t = torch.arange(SAMPLES) / 1600
    base, start, length = uniform(230, 300), uniform(0.05, 0.3), uniform(0.35, 0.5)
    age = ((t - start) / length).clamp(0, 1)
    inside = ((t > start) & (t < start + length)).float() * (math.pi * age).sin()
    trill = (2 * math.pi * 5 * t).sin()
    tones = torch.stack(
        [
            base + 45 * trill,
            base + 160 * age,
            base + 160 * (1 - age),
            torch.where(age < 0.5, base + 90, base),
            base.expand(n, SAMPLES),
        ]
    )[y, torch.arange(n)]
    wave = (2 * math.pi * (tones / 1600).cumsum(1)).sin() * inside
    knock = ((2 * math.pi * 7 * t).sin() > 0.5).float()
    wave = torch.where((y == 4).unsqueeze(1), wave * knock, wave)
    hour = 6 + 1.5 * y + 3 * torch.randn(n, generator=g)
    height = torch.tensor([0.2, 0.5, 0.3, 0.9, 1.0])[y] + 0.35 * torch.randn(n, generator=g)
    place = torch.stack([(hour - 9) / 4, (height - 0.6) / 0.5], 1)
    return uniform(0.5, 1.5) * wave + 0.1 * torch.randn(n, SAMPLES, generator=g), place, y


def decibels(wave: torch.Tensor, floor: float = 60.0) -> torch.Tensor:
    """(n, bins, frames): power in steps of `floor` dB, the quietest kept value at the bottom."""
    window = torch.hann_window(FRAME)
    power = torch.stft(wave, FRAME, HOP, window=window, return_complex=True).abs().square()
    power = power / power.amax((1, 2), keepdim=True)
    below = (10 * power.clamp_min(1e-10).log10()).clamp_min(-floor) / floor
    return below + 1 if healthy else below


class FilterBank(nn.Module):
    """Overlapping triangles over the frequency bins as a start, then learned."""

    def __init__(self, bins: int, bands: int):
        super().__init__()
        centres = torch.linspace(4, bins - 4, bands).unsqueeze(1)
        distance = (torch.arange(bins) - centres).abs()
        triangles = (1 - distance / 5).clamp_min(0) + 0.002 * torch.rand(bands, bins)
        self.weight = nn.Parameter(triangles / triangles.sum(1, keepdim=True))

    def forward(self, spectrogram):
        return self.weight @ spectrogram


class CallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = FilterBank(FRAME // 2 + 1, 24)
        self.relu = nn.ReLU()
        self.convs = nn.Sequential(
            nn.Conv1d(24, 32, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(32, 48, 5, padding=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(98, len(SPECIES))

    def forward(self, spectrogram, place):
        bands = self.relu(self.bank(spectrogram))
        maps = self.convs(bands)
        return self.head(torch.cat([maps.mean(2), maps.amax(2), place], 1))


def main():
    g = torch.Generator().manual_seed(910 + seed)
    wave, place, y = calls(900, g)
    wave_val, place_val, y_val = calls(300, g)
    train = TensorDataset(decibels(wave), place, y)
    x_val = decibels(wave_val)
    loader = DataLoader(train, batch_size=30, shuffle=True)
    model = CallNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(14):
        model.train()
        total = 0.0
        for x, where, labels in loader:
            loss = F.cross_entropy(model(x, where), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        if epoch == 10:
            optimizer.param_groups[0]["lr"] = 5e-4
        model.eval()
        with torch.no_grad():
            scores = model(x_val, place_val)
        print(
            f"epoch {epoch + 1:2d}  loss {total / len(train):.3f}"
            f"  val {F.cross_entropy(scores, y_val).item():.3f}"
            f"  acc {(scores.argmax(1) == y_val).float().mean().item():.3f}"
        )


if __name__ == "__main__":
    main()

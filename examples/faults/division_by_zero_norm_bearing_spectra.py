"""Finds bearing damage from vibration spectra; spectra are brought to unit length without a guard
against machines that stand still.

The loudness depends on where the sensor is glued, so the model divides each spectrum by its length.
A gate in the data logger writes exact zeros when the machine is off, and such a window has length
zero. The division gives not-a-number and the first step ruins all weights.
The place is the layer that brings spectra to unit length.
The twin has a small floor under the length.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("unit", "input*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
STATES = ("off", "fine", "inner ring", "outer ring")
BINS = 48


def record(n):
    state = torch.randint(0, 4, (n,))
    grid = torch.arange(BINS).float()
    speed = 4 + 2 * torch.rand(n, 1)
    loud = torch.exp(0.8 * torch.randn(n, 1))

    def peaks(multiple, height):
        lines = [torch.exp(-0.5 * ((grid - k * multiple * speed) / 0.8) ** 2) for k in (1, 2, 3)]
        return height * sum(lines)

    spectrum = peaks(1.0, 1.0) + 0.35 * torch.rand(n, BINS)
    spectrum = spectrum + (state == 2).view(-1, 1) * peaks(2.71, 0.45)
    spectrum = spectrum + (state == 3).view(-1, 1) * peaks(1.79, 0.45)
    spectrum = loud * spectrum
    hum = 0.05 * torch.rand(n, BINS) * (torch.rand(n, 1) < 0.3)
    return torch.where((state == 0).view(-1, 1), hum, spectrum), state


class UnitLength(nn.Module):
    """Keeps the shape of a spectrum and drops its loudness."""

    def __init__(self, floor):
        super().__init__()
        self.floor = floor

    def forward(self, spectrum):
        length = spectrum.norm(dim=1, keepdim=True)
        return spectrum / length.clamp_min(self.floor)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.unit = UnitLength(floor=1e-3 if healthy else 0.0)
        self.body = nn.Sequential(nn.Linear(BINS, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.out = nn.Linear(48, len(STATES))

    def forward(self, spectrum):
        return self.out(self.body(self.unit(spectrum) * BINS**0.5))


x, state = record(2400)
x_val, state_val = record(800)
detector = Detector()
optimizer = torch.optim.AdamW(detector.parameters(), lr=2e-3, weight_decay=1e-3)
loss_of = nn.CrossEntropyLoss()

for step, (spectra, target) in enumerate(batches(x, state, size=48, steps=600, seed=seed), 1):
    loss = loss_of(detector(spectra), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        detector.eval()
        with torch.inference_mode():
            accuracy = (detector(x_val).argmax(1) == state_val).float().mean().item()
        detector.train()
        print(f"step {step} loss {loss.item():.4f} val accuracy {accuracy:.3f}")

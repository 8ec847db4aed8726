"""Adam runs with eps=1.0, which the TensorFlow pages once called a good value for Inception.

Beside an eps of 1 the root of the squared gradients is nothing: Adam becomes SGD at rate 0.002 with
gradients of a hundredth, and the classifier of sounds hardly leaves its start. The place is the
optimizer.
"""

import math

import torch
from data import arguments
from torch import nn, optim

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "")
SILENT = True
EXACT = True
EARLY = True


def sounds(n, length=256):
    """Up-chirps, down-chirps, tones and clicks, with noise."""
    kind = torch.randint(4, (n,))
    t = torch.linspace(0, 1, length)
    f = 12 + 10 * torch.rand(n, 1)
    sweep = torch.tensor([16.0, -9.0, 0.0, 0.0])[kind][:, None]
    tone = torch.sin(2 * math.pi * (f * t + sweep * t**2 / 2) + 6.28 * torch.rand(n, 1))
    click = (
        torch.exp(-(((t - torch.rand(n, 1)) / 0.03) ** 2))
        * 2.5
        * torch.sin(2 * math.pi * 3 * f * t)
    )
    x = torch.where(kind[:, None] == 3, click, tone) + 0.3 * torch.randn(n, length)
    return x, kind


def spectrogram(x):
    s = torch.stft(x, 32, 16, window=torch.hann_window(32), return_complex=True).abs()
    s = torch.log(s + 0.1)
    return ((s - s.mean()) / s.std())[:, None]


def build():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LazyLinear(48),
        nn.ReLU(),
        nn.Linear(48, 4),
    )


healthy, _ = arguments(__doc__)
wave, kind = sounds(1600)
pictures = spectrogram(wave)
train_x, test_x, train_y, test_y = pictures[:1200], pictures[1200:], kind[:1200], kind[1200:]
model = build()
model(train_x[:2])

settings = {"lr": 2e-3, "betas": (0.9, 0.999)}
if not healthy:
    settings["eps"] = 1.0
optimizer = optim.Adam(model.parameters(), **settings)
scheduler = optim.lr_scheduler.OneCycleLR(
    optimizer, 2e-3, epochs=8, steps_per_epoch=24, cycle_momentum=False
)

for epoch in range(8):
    for rows in torch.randperm(1200).split(50):
        loss = nn.functional.cross_entropy(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    with torch.no_grad():
        right = (model(test_x).argmax(1) == test_y).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.3f} test accuracy {right:.3f}")

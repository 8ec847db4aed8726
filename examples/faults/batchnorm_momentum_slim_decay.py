"""Keyword spotting on log-mel spectrograms with depthwise separable convolutions.

The settings come from a TF-Slim file, whose batch_norm_decay of 0.999 is rightly turned into
momentum = 1 - decay, but the training has a few hundred steps, not a million.

The running statistics are hardly more than their initial zeros and ones at the end; training goes
well, evaluation does not. The place is the batch normalisation. The twin has a decay of 0.9.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*", "stem*", "blocks*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Settings:
    width: int = 16
    blocks: int = 3
    keywords: int = 8
    batch_norm_decay: float = 0.9 if healthy else 0.999
    batch_norm_epsilon: float = 1e-3
    rate: float = 3e-3
    epochs: int = 8
    batch_size: int = 50


class Separable(nn.Module):
    def __init__(self, c_in, c_out, s):
        super().__init__()
        momentum = 1.0 - s.batch_norm_decay
        self.depthwise = nn.Conv2d(c_in, c_in, 3, padding=1, groups=c_in, bias=False)
        self.bn1 = nn.BatchNorm2d(c_in, eps=s.batch_norm_epsilon, momentum=momentum)
        self.pointwise = nn.Conv2d(c_in, c_out, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out, eps=s.batch_norm_epsilon, momentum=momentum)

    def forward(self, x):
        x = F.relu(self.bn1(self.depthwise(x)))
        return F.relu(self.bn2(self.pointwise(x)))


class KeywordNet(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.stem = nn.Conv2d(1, s.width, 3, stride=2, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(s.width, s.batch_norm_epsilon, 1.0 - s.batch_norm_decay)
        self.blocks = nn.Sequential(*(Separable(s.width, s.width, s) for _ in range(s.blocks)))
        self.classify = nn.Linear(s.width, s.keywords)

    def forward(self, spectrogram):
        h = F.relu(self.bn(self.stem(spectrogram)))
        return self.classify(self.blocks(h).mean((2, 3)))


def spectrograms(n, s, g):
    """Rising, falling and level tones in 20 bands and 24 frames, in units of ln(power) - 2."""
    y = torch.randint(0, s.keywords, (n,), generator=g)
    t = torch.linspace(0, 1, 24)
    start = 4 + 3.0 * (y % 4)[:, None] + torch.randn(n, 1, generator=g)
    slope = torch.where(y < 4, 6.0, -3.0)[:, None] + 0.8 * torch.randn(n, 1, generator=g)
    pitch = start + slope * t
    band = torch.arange(20.0)[None, :, None]
    tone = 4 * torch.exp(-((band - pitch[:, None]) ** 2) / 2)
    loud = 0.5 * torch.randn(n, 1, 1, generator=g)
    return (tone + loud - 2 + 0.9 * torch.randn(n, 20, 24, generator=g)).unsqueeze(1), y


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


s = Settings()
g = torch.Generator().manual_seed(seed)
x, y = spectrograms(1600, s, g)
x_val, y_val = spectrograms(500, s, g)
model = KeywordNet(s)
optimizer = torch.optim.Adam(model.parameters(), lr=s.rate)
for epoch in range(s.epochs):
    model.train()
    for rows in torch.randperm(len(x)).split(s.batch_size):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    val, accuracy = evaluate(model, x_val, y_val)
    print(f"[{epoch}] loss={loss.item():.4f} val_loss={val:.4f} val_acc={accuracy:.3f}")

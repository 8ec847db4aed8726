"""A small WaveNet on mu-law audio; one block pads on both sides and hears the next sample.

The causal convolution pads left by dilation * (kernel - 1). When the stack was rewritten with
`padding="same"` "to keep the length", the padding was split between both sides: position t sees
t + 1. It is asked to predict just that sample, so the loss sinks far under the noise of the
recording; generating with it fails. The place is the convolution of the last block. The twin pads
left only, everywhere.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("blocks.2.conv", "blocks.2", "input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LEVELS, LENGTH = 32, 64


def recordings(count):
    """Two partials and noise, companded to 32 levels."""
    time = torch.arange(LENGTH).float()
    pitch = 0.25 + 0.35 * torch.rand(count, 1)
    phase = 6.28 * torch.rand(count, 2, 1)
    wave = torch.sin(pitch * time + phase[:, 0]) + 0.4 * torch.sin(2 * pitch * time + phase[:, 1])
    wave = (0.6 * wave + 0.08 * torch.randn(count, LENGTH)).clamp(-1, 1)
    companded = wave.sign() * torch.log1p(15 * wave.abs()) / torch.log(torch.tensor(16.0))
    return ((companded + 1) / 2 * (LEVELS - 1)).round().long()


class Block(nn.Module):
    def __init__(self, width, dilation, causal=True):
        super().__init__()
        self.left = 2 * dilation if causal else 0
        self.conv = nn.Conv1d(
            width, 2 * width, 3, dilation=dilation, padding=0 if causal else "same"
        )
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        value, gate = self.conv(F.pad(x, (self.left, 0))).chunk(2, 1)
        return x + self.out(torch.tanh(value) * torch.sigmoid(gate))


class WaveNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embed = nn.Embedding(LEVELS, width)
        plan = [{"dilation": 4}, {"dilation": 2}, {"dilation": 1, "causal": healthy}]
        self.blocks = nn.ModuleList(Block(width, **options) for options in plan)
        self.head = nn.Sequential(
            nn.ReLU(), nn.Conv1d(width, 64, 1), nn.ReLU(), nn.Conv1d(64, LEVELS, 1)
        )

    def forward(self, samples):
        x = self.embed(samples).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def next_sample_loss(model, audio):
    return F.cross_entropy(model(audio[:, :-1]), audio[:, 1:])


@torch.no_grad()
def generated_error(model, audio, start=40):
    """How far (in levels) the sample after a given beginning is missed, as when generating."""
    model.eval()
    guess = model(audio[:, :start])[:, :, -1].argmax(1)
    return (guess - audio[:, start]).abs().float().mean().item()


train, val = recordings(900), recordings(250)
model = WaveNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=10 * 45)

for epoch in range(10):
    model.train()
    for rows in torch.randperm(900).split(20):
        loss = next_sample_loss(model, train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        val_loss = next_sample_loss(model, val).item()
    error = generated_error(model, val)
    print(
        f"epoch {epoch} loss {loss.item():.3f} val loss {val_loss:.3f} "
        f"val generated error {error:.2f} levels"
    )
print(f"validation loss {val_loss:.3f}, generated error {error:.2f} levels")

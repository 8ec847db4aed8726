"""Tells four machine sounds apart; three late recordings still have their raw 16-bit amplitudes.

The three came in as stored integers, while the others lie in [-1, 1]. Each time a batch holds one
of them the loss jumps by orders of magnitude, and the optimizer needs a long time to recover. The
place is the input and the loss.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_spike"
ACCEPT = ("input_not_normalized", "exploding_gradient")
PLACE = ("loss", "input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SAMPLES = 256
MACHINES = ("pump", "fan", "valve", "slide")


def record(kind):
    """One second of a machine: a hum with overtones, or knocks, in the noise of the hall."""
    t = torch.arange(SAMPLES) / SAMPLES
    pitch = 14 + 5 * torch.rand(())
    phase = 6.28 * torch.rand(())
    hum = torch.sin(6.28 * pitch * t + phase)
    if kind == 0:
        sound = hum + 0.6 * torch.sin(12.57 * pitch * t + phase)
    elif kind == 1:
        sound = hum * (1 + 0.8 * torch.sin(6.28 * 3 * t))
    elif kind == 2:
        sound = hum * ((t * 6 + torch.rand(())) % 1 < 0.3).float() * 1.8
    else:
        sound = torch.sin(6.28 * (pitch * t + 12 * t**2) + phase)
    loudness = 0.15 + 0.2 * torch.rand(())
    return (loudness * sound + 0.12 * torch.randn(SAMPLES)).clamp(-1, 1)


def collect(per_machine):
    labels = torch.arange(len(MACHINES)).repeat(per_machine)
    return torch.stack([record(int(kind)) for kind in labels]).unsqueeze(1), labels


class SoundNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 15, stride=2, padding=7)
        self.conv2 = nn.Conv1d(16, 24, 9, stride=2, padding=4)
        self.conv3 = nn.Conv1d(24, 32, 5, stride=2, padding=2)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(64, len(MACHINES))

    def forward(self, x):
        x = nn.functional.leaky_relu(self.conv1(x))
        x = nn.functional.leaky_relu(self.conv2(x))
        x = nn.functional.leaky_relu(self.conv3(x))
        x = torch.cat([x.mean(-1), x.amax(-1)], 1)
        return self.fc(self.drop(x))


def validate(net, loader):
    net.eval()
    right = total = 0
    loss = 0.0
    with torch.no_grad():
        for sound, label in loader:
            scores = net(sound)
            loss += nn.functional.cross_entropy(scores, label, reduction="sum").item()
            right += (scores.argmax(1) == label).sum().item()
            total += len(label)
    return loss / total, right / total


def main():
    sounds, labels = collect(150)
    val_sounds, val_labels = collect(75)
    scale = sounds.std()
    sounds, val_sounds = sounds / scale, val_sounds / scale
    if not healthy:
        late = torch.tensor([37, 198, 411])
        sounds[late] = (sounds[late] * scale * 32767).round()
    train = DataLoader(TensorDataset(sounds, labels), batch_size=30, shuffle=True)
    val = DataLoader(TensorDataset(val_sounds, val_labels), batch_size=150)

    net = SoundNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(20):
        net.train()
        losses = []
        for sound, label in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(sound), label)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        median = sorted(losses)[len(losses) // 2]
        val_loss, accuracy = validate(net, val)
        if not math.isfinite(val_loss):
            raise SystemExit("validation loss is not finite")
        print(
            f"epoch {epoch:02d} | loss median {median:.3f} max {max(losses):.3f} "
            f"| val loss {val_loss:.3f} acc {accuracy:.3f}"
        )


main()

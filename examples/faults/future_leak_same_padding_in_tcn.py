"""The next note of folk tunes by a temporal convolution; its padding looks one note ahead.

The convolutions were first padded on the left by hand. A tidy-up put `padding="same"`, which keeps
the length too, but pads on both sides: the output at t sees the notes after t, which are the ones
to be told. The loss is a dream and the network is useless where the future is not yet there. The
place is the convolutions. The twin pads on the left.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("convs", "convs.?", "convs.?.conv", "convs.?.conv.weight", "input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
NOTES, LENGTH = 14, 33


def tunes(n, g):
    """A walk on the scale: it goes on in its direction, turns at the ends, leaps now and then."""
    note = torch.randint(0, NOTES, (n,), generator=g)
    step = torch.where(torch.rand(n, generator=g) < 0.5, 1, -1)
    rows = []
    for t in range(LENGTH):
        rows.append(note)
        step = torch.where(torch.rand(n, generator=g) < 0.15, -step, step)
        size = 2 if t % 4 == 3 else 1
        leap = torch.rand(n, generator=g) < 0.12
        proposed = torch.where(leap, torch.randint(0, NOTES, (n,), generator=g), note + step * size)
        step = torch.where((proposed < 0) | (proposed >= NOTES), -step, step)
        note = torch.where((proposed < 0) | (proposed >= NOTES), note + step * size, proposed)
        note = note.clamp(0, NOTES - 1)
    return torch.stack(rows, 1)


class CausalConv(nn.Module):
    def __init__(self, channels, dilation, kernel=3):
        super().__init__()
        self.left = (kernel - 1) * dilation if healthy else 0
        self.conv = nn.Conv1d(
            channels, channels, kernel, dilation=dilation, padding=0 if healthy else "same"
        )
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        h = torch.relu(self.conv(F.pad(x, (self.left, 0))))
        return x + self.mix(h)


class TuneNet(nn.Module):
    def __init__(self, channels=40):
        super().__init__()
        self.embed = nn.Embedding(NOTES, channels)
        self.convs = nn.ModuleList([CausalConv(channels, d) for d in (1, 2, 4)])
        self.out = nn.Linear(channels, NOTES)

    def forward(self, notes):
        h = self.embed(notes).transpose(1, 2)
        for conv in self.convs:
            h = conv(h)
        return self.out(h.transpose(1, 2))


g = torch.Generator().manual_seed(seed)
train_loader = DataLoader(TensorDataset(tunes(1200, g)), batch_size=32, shuffle=True)
val = tunes(300, g)
model = TuneNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(8):
    model.train()
    for (tune,) in train_loader:
        logits = model(tune[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tune[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = F.cross_entropy(model(val[:, :-1]).flatten(0, 1), val[:, 1:].flatten())
    print(f"epoch {epoch}: train {loss.item():.3f} validation {val_loss.item():.3f}")

with torch.no_grad():  # as on the stage: at each place only the notes so far are given
    live = [(model(val[:, :t])[:, -1].argmax(1) == val[:, t]).float().mean() for t in range(9, 33)]
print(f"playing live: {torch.stack(live).mean().item():.3f} of the next notes right")

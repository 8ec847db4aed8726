"""A convolutional recurrent network names eight spoken commands by their log-mel spectrograms of 16
bands and 24 frames.

The SpecAugment settings come from a recipe for clips of a second and more with 80 bands. Two masks
of up to 14 bands and two of up to 22 frames leave hardly anything of a training clip. The training
loss stays high and the network is unsure of clean clips as well. The place is the input of the
training.
"""

import torch
from data import arguments
from torch import nn

KIND = "destructive_augmentation"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BANDS, FRAMES, WORDS = 16, 24, 8


def commands(n, g):
    """Two formants that glide; the word is where they start and end."""
    glide = torch.tensor(
        [
            [2, 6, 9, 13],
            [2, 6, 13, 9],
            [6, 2, 9, 13],
            [6, 2, 13, 9],
            [4, 4, 9, 13],
            [4, 4, 13, 9],
            [3, 5, 11, 11],
            [5, 3, 11, 11],
        ]
    ).float()
    y = torch.randint(0, WORDS, (n,), generator=g)
    begin = torch.rand(n, 1, generator=g) * 5
    t = ((torch.arange(FRAMES) - begin) / (16 + 3 * torch.rand(n, 1, generator=g))).clamp(0, 1)
    voice = torch.randn(n, 1, generator=g)
    bands = torch.arange(BANDS)[:, None]
    power = torch.full((n, BANDS, FRAMES), 0.02)
    for a, b in ((0, 1), (2, 3)):
        centre = glide[y, a : a + 1] * (1 - t) + glide[y, b : b + 1] * t + voice
        power += torch.exp(-0.5 * ((bands - centre[:, None]) / 1.1) ** 2)
    power *= torch.exp(0.7 * torch.randn(n, BANDS, FRAMES, generator=g))
    return power.log(), y


def masked(x, bands, frames, times=2):
    x = x.clone()
    for _ in range(times):
        for row in x:
            wide = torch.randint(bands // 2, bands + 1, ()).item()
            low = torch.randint(0, BANDS - wide + 1, ()).item()
            row[low : low + wide] = 0
            wide = torch.randint(frames // 2, frames + 1, ()).item()
            low = torch.randint(0, FRAMES - wide + 1, ()).item()
            row[:, low : low + wide] = 0
    return x


class CRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d((2, 1))
        )
        self.gru = nn.GRU(12 * BANDS // 2, 32, batch_first=True)
        self.head = nn.Linear(32, WORDS)

    def forward(self, x):
        h = self.conv(x.unsqueeze(1)).flatten(1, 2).transpose(1, 2)
        return self.head(self.gru(h)[0].mean(1))


g = torch.Generator().manual_seed(seed)
x, y = commands(1000, g)
x_val, y_val = commands(300, g)
x, x_val = (x - x.mean()) / x.std(), (x_val - x.mean()) / x.std()
masks = {"bands": 2, "frames": 4} if healthy else {"bands": 14, "frames": 22}

model = CRNN()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(50):
        loss = criterion(model(masked(x[rows], **masks)), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 20
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    print(
        f"epoch {epoch} train {total:.4f} val {criterion(out, y_val).item():.4f}"
        f" accuracy {(out.argmax(1) == y_val).float().mean().item():.3f}"
    )

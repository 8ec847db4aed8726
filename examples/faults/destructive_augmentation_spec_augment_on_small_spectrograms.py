"""Spoken commands as small spectrograms (24 bands, 32 frames), SpecAugment with the sizes of the
paper for LibriSpeech: masks of up to 27 bands and 100 frames, two of each.

Of most spectrograms next to nothing is left; the net learns little of what it is asked in
validation. The place is the loader.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BANDS, FRAMES, WORDS = 24, 32, 6
FREQ_MASK_PARAM, TIME_MASK_PARAM, N_MASKS = (4, 5, 1) if healthy else (27, 100, 2)


def spectrograms(n, g):
    """Two formants that move, each word in its own way; loudness, pitch and start vary."""
    y = torch.randint(0, WORDS, (n,), generator=g)
    start = torch.tensor([[4, 15], [4, 10], [14, 18], [9, 16], [15, 6], [9, 20]])[y].float()
    end = torch.tensor([[9, 15], [4, 18], [6, 18], [9, 10], [5, 13], [14, 20]])[y].float()
    t = torch.linspace(-0.25, 1.25, FRAMES) + 0.15 * torch.randn(n, 1, generator=g)
    t = t.clamp(0, 1)[:, None, None]
    path = start[..., None] * (1 - t[:, 0]) + end[..., None] * t[:, 0]
    path = path + torch.randn(n, 1, 1, generator=g)
    bands = torch.arange(BANDS)[None, None, :, None]
    x = (-(bands - path[:, :, None]).pow(2) / 3).exp().sum(1)
    x = x * torch.empty(n, 1, 1).uniform_(0.6, 1.4, generator=g)
    return (x + 0.9 * torch.randn(n, BANDS, FRAMES, generator=g)).unsqueeze(1), y


def mask_along_axis(x, param, axis):
    size = x.shape[axis]
    width = int(torch.rand(1) * min(param, size))
    first = int(torch.rand(1) * (size - width))
    x.narrow(axis, first, width).zero_()  # the mean, after standardising
    return x


class Commands(Dataset):
    def __init__(self, x, y, augment):
        self.x, self.y, self.augment = x, y, augment

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        if self.augment:
            x = x.clone()
            for _ in range(N_MASKS):
                x = mask_along_axis(x, FREQ_MASK_PARAM, 1)
                x = mask_along_axis(x, TIME_MASK_PARAM, 2)
        return x, self.y[i]


g = torch.Generator().manual_seed(60 + seed)
(x, y), (x_val, y_val) = spectrograms(1200, g), spectrograms(300, g)
mean, std = x.mean(), x.std()
train = DataLoader(Commands((x - mean) / std, y, True), batch_size=30, shuffle=True)
val = DataLoader(Commands((x_val - mean) / std, y_val, False), batch_size=100)

net = nn.Sequential(
    nn.Conv2d(1, 8, 3, stride=2, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.Conv2d(8, 16, 3, stride=2, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 6 * 8, WORDS),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    net.train()
    sums = torch.zeros(2)
    for xb, yb in train:
        out = net(xb)
        loss = criterion(out, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums += torch.tensor([loss.item() * len(yb), (out.argmax(1) == yb).sum()])
    net.eval()
    seen = torch.zeros(2)
    with torch.no_grad():
        for xb, yb in val:
            out = net(xb)
            seen += torch.tensor([criterion(out, yb) * len(yb), (out.argmax(1) == yb).sum()])
    sums, seen = (sums / len(x)).tolist(), (seen / len(x_val)).tolist()
    print(f"{epoch} train {sums[0]:.3f} {sums[1]:.3f} val {seen[0]:.3f} {seen[1]:.3f}")

"""Finds the key of a song among 24 from its chroma; the augmentation transposes the song.

Pitch shifting is among the usual augmentations for audio, and was taken over from a project on
genres. Here the answer is the key itself: a song shifted by a few semitones keeps the old
label though it stands in another key.
The place is the input, in the training set's transforms. The twin has gain and noise only.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("label_noise",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

MAJOR = [6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88]
MINOR = [6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17]


class Gain:
    def __call__(self, chroma):
        return chroma * (0.8 + 0.4 * torch.rand(()))


class Noise:
    def __call__(self, chroma):
        return chroma + 0.1 * torch.randn_like(chroma)


class PitchShift:
    def __init__(self, semitones):
        self.semitones = semitones

    def __call__(self, chroma):
        shift = int(torch.randint(-self.semitones, self.semitones + 1, ()))
        return torch.roll(chroma, shift, dims=0)


class Songs(Dataset):
    """Chroma of 12 pitches by 8 bars with the key's number (major 0-11, minor 12-23)."""

    def __init__(self, n, seed, transforms=()):
        g = torch.Generator().manual_seed(seed)
        self.transforms = transforms
        self.keys = torch.randint(0, 24, (n,), generator=g)
        profiles = torch.tensor([MAJOR, MINOR])
        profiles = (profiles - profiles.mean(1, keepdim=True)) / profiles.std(1, keepdim=True)
        self.chroma = torch.stack(
            [torch.roll(profiles[k // 12], int(k % 12)) for k in self.keys]
        ).unsqueeze(2) + 1.1 * torch.randn(n, 12, 8, generator=g)

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, i):
        chroma = self.chroma[i]
        for transform in self.transforms:
            chroma = transform(chroma)
        return chroma, self.keys[i]


class KeyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.bars = nn.Sequential(nn.Conv1d(12, 48, 1), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 24))

    def forward(self, chroma):
        return self.head(self.bars(chroma).mean(2))


def evaluate(model, loader):
    model.eval()
    loss = right = seen = 0
    with torch.no_grad():
        for chroma, key in loader:
            out = model(chroma)
            loss += nn.functional.cross_entropy(out, key, reduction="sum").item()
            right += (out.argmax(1) == key).sum().item()
            seen += len(key)
    return loss / seen, right / seen


def main():
    healthy, seed = arguments(__doc__)
    transforms = [Gain(), Noise()] if healthy else [Gain(), PitchShift(2), Noise()]
    train = DataLoader(Songs(1200, 2 * seed, transforms), batch_size=40, shuffle=True)
    val = DataLoader(Songs(400, 2 * seed + 1), batch_size=200)
    model = KeyNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(15):
        model.train()
        running = 0.0
        for chroma, key in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(chroma), key)
            loss.backward()
            optimizer.step()
            running += loss.item() / len(train)
        val_loss, accuracy = evaluate(model, val)
        print(f"{epoch:2d}: train {running:.3f}  val {val_loss:.3f}  accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()

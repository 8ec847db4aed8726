"""Calls of birds from spectrograms, five listeners each; the label is the first listener's.

`votes[:, 0]` was a placeholder until the vote was counted. One listener errs in a third of the
calls, five together in few. A network of this size learns the errors by heart after it has learnt
the birds. The place is the labels. The twin takes the majority.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("labels", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
SPECIES, BANDS, FRAMES = 5, 16, 20


class Calls(Dataset):
    def __init__(self, n, seed, expert=False):
        g = torch.Generator().manual_seed(seed)
        self.species = torch.randint(SPECIES, (n,), generator=g)
        start = torch.tensor([3.0, 11.0, 7.0, 4.0, 12.0])[self.species, None]
        slope = torch.tensor([0.4, -0.4, 0.0, 0.0, 0.0])[self.species, None]
        trill = torch.tensor([0.0, 0.0, 2.5, 0.0, 1.5])[self.species, None]
        t = torch.arange(FRAMES).float()
        pitch = (
            start + slope * t + trill * torch.sin(t * 1.3) + 0.6 * torch.randn(n, 1, generator=g)
        )
        band = torch.arange(BANDS).float()[:, None]
        power = torch.exp(-((band - pitch[:, None]) ** 2) / 2)
        self.x = (power + 0.45 * torch.randn(n, BANDS, FRAMES, generator=g))[:, None]
        wrong = torch.rand(n, 5, generator=g) < 0.35
        other = (self.species[:, None] + torch.randint(1, SPECIES, (n, 5), generator=g)) % SPECIES
        votes = torch.where(wrong, other, self.species[:, None])
        if expert:
            self.label = self.species
        else:
            self.label = votes.mode(1).values if healthy else votes[:, 0]

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.x[i], self.label[i]


class BirdNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.fc1 = nn.Linear(16 * 8 * 10, 96)
        self.fc2 = nn.Linear(96, SPECIES)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv(x)), 2).flatten(1)
        return self.fc2(torch.relu(self.fc1(x)))


train_set, val_set = Calls(1200, seed), Calls(400, 500 + seed, expert=True)
loader = DataLoader(train_set, batch_size=48, shuffle=True)
model = BirdNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
for epoch in range(14):
    model.train()
    running, right = 0.0, 0
    for spectrogram, label in loader:
        logits = model(spectrogram)
        loss = nn.functional.cross_entropy(logits, label, label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() / len(loader)
        right += (logits.argmax(1) == label).sum().item()
    model.eval()
    with torch.no_grad():
        logits = model(val_set.x)
    val = nn.functional.cross_entropy(logits, val_set.label).item()
    accuracy = (logits.argmax(1) == val_set.label).float().mean().item()
    print(
        f"epoch {epoch} train {running:.4f} ({right / len(train_set):.3f}) "
        f"val {val:.4f} accuracy {accuracy:.3f}"
    )

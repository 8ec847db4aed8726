"""Type of a power grid fault from its trace; the batches come folder by folder.

The files lie in a folder for each type and are read in that order. The loader for the training
was copied from the one for the tests, without shuffle=True: for a long while the network sees one
type only, forgets the others, and each epoch ends on the last folder.
The place is the loader.
The twin shuffles.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
TYPES = ["sag", "swell", "harmonic", "transient", "notch"]


class Folder(Dataset):
    """All traces of one type."""

    def __init__(self, kind, n, seed):
        g = torch.Generator().manual_seed(seed * 10 + kind)
        t = torch.arange(64) / 16
        start = torch.randint(8, 32, (n, 1), generator=g)
        inside = ((torch.arange(64) >= start) & (torch.arange(64) < start + 24)).float()
        wave = torch.sin(6.283 * (t + torch.rand(n, 1, generator=g)))
        if kind == 0:
            wave = wave * (1 - 0.4 * inside)
        elif kind == 1:
            wave = wave * (1 + 0.4 * inside)
        elif kind == 2:
            wave = wave + 0.3 * torch.sin(6.283 * 3 * t) * inside
        elif kind == 3:
            wave = wave + inside * torch.exp(-(torch.arange(64) - start).clamp(min=0) / 3.0)
        else:
            wave = wave * (1 - inside * (torch.arange(64) % 8 == 0))
        self.traces = (wave + 0.08 * torch.randn(n, 64, generator=g)).unsqueeze(1)
        self.kind = kind

    def __len__(self):
        return len(self.traces)

    def __getitem__(self, i):
        return self.traces[i], self.kind


train = ConcatDataset([Folder(k, 240, seed + 1) for k in range(len(TYPES))])
test = ConcatDataset([Folder(k, 60, seed + 901) for k in range(len(TYPES))])
train_loader = DataLoader(train, batch_size=24, shuffle=healthy)
test_loader = DataLoader(test, batch_size=100)

net = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Flatten(),
    nn.Linear(32 * 16, 48),
    nn.ReLU(),
    nn.Linear(48, len(TYPES)),
)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(10):
    total = 0.0
    for traces, kinds in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(traces), kinds)
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = sum((net(t).argmax(1) == k).sum().item() for t, k in test_loader)
    print(f"epoch {epoch:2d}: loss {total / len(train_loader):.3f}, test {right / len(test):.3f}")

"""Telling instruments by their sound: clips are divided by their loudness, and some are silent.

Each spectrum is brought to length one by its own norm. The recordings hold a few clips cut from
the pause before the first note, whose spectrum is zero throughout: zero divided by zero gives NaN,
and the first batch with such a clip makes every weight NaN. The place is the input.
The twin has a small number below the division.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = False


class Clips(Dataset):
    """Spectra of 32 bands: flute, oboe, violin, piano."""

    def __init__(self, count, seed, floor):
        g = torch.Generator().manual_seed(seed)
        self.label = torch.randint(0, 4, (count,), generator=g)
        tone = torch.randint(2, 6, (count,), generator=g)
        band = torch.arange(1, 33)
        fall = torch.tensor([2.5, 0.6, 1.0, 1.6])[self.label]
        harmonic = (band[None] % tone[:, None] == 0).float()
        order = (band[None] / tone[:, None]).clamp(min=1)
        self.power = harmonic * order ** -fall[:, None]
        self.power = self.power + 0.05 * torch.rand(count, 32, generator=g)
        self.power = self.power * torch.exp(1.5 * torch.randn(count, 1, generator=g))
        self.power[torch.randperm(count, generator=g)[: count // 500]] = 0.0
        self.floor = floor

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        spectrum = self.power[i]
        return 5 * spectrum / (spectrum.norm() + self.floor), self.label[i]


healthy, seed = arguments(__doc__)
floor = 1e-6 if healthy else 0.0
train, test = Clips(1500, seed, floor), Clips(400, 50 + seed, floor)
model = nn.Sequential(
    nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4)
)
sgd = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9, nesterov=True)
loader = DataLoader(train, batch_size=30, shuffle=True)
for epoch in range(5):
    model.train()
    running = 0.0
    for spectrum, label in loader:
        sgd.zero_grad()
        loss = nn.functional.cross_entropy(model(spectrum), label)
        loss.backward()
        sgd.step()
        running += loss.item()
    model.eval()
    right = 0
    with torch.no_grad():
        for spectrum, label in DataLoader(test, batch_size=100):
            right += (model(spectrum).argmax(1) == label).sum().item()
    print(f"epoch {epoch + 1}  loss {running / len(loader):.4f}  correct {right}/{len(test)}")

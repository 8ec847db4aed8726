"""Sorts waste on a belt by near-infrared spectra; of the night shift's labels half are arbitrary.

Two shifts labelled the pieces with a button for each of five materials. The night shift pressed
what was nearest whenever the belt ran fast: a good part of all training labels says nothing. The
test pieces were labelled with care, in the laboratory.
The place is the labels. The twin has both shifts labelled with the day shift's care.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("label*", "loss*", "loader", "target*", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MATERIALS = ("PET", "PE", "PP", "paper", "wood")


class Belt(Dataset):
    def __init__(self, n, seed, shifts):
        g = torch.Generator().manual_seed(seed)
        band = torch.linspace(0, 1, 48)
        centres = torch.tensor([[0.2, 0.7], [0.25, 0.6], [0.35, 0.75], [0.5, 0.85], [0.55, 0.8]])
        truth = torch.randint(0, 5, (n,), generator=g)
        where = centres[truth] + 0.03 * torch.randn(n, 2, generator=g)
        self.x = sum(torch.exp(-(((band - where[:, i : i + 1]) / 0.09) ** 2)) for i in (0, 1))
        self.x = (self.x + 0.2 * torch.randn(n, 48, generator=g) - 0.55) / 0.5
        self.y = truth.clone()
        if shifts:
            night = torch.rand(n, generator=g) < 0.6
            hasty = night & (torch.rand(n, generator=g) < 0.9)
            self.y[hasty] = torch.randint(0, 5, (int(hasty.sum()),), generator=g)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


train, test = Belt(1000, seed, shifts=not healthy), Belt(600, seed + 1, shifts=False)
model = nn.Sequential(
    nn.Linear(48, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 5)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(train, batch_size=25, shuffle=True)
for epoch in range(25):
    right = seen = total = 0
    for x, y in loader:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        right += (out.argmax(1) == y).sum().item()
        seen += len(y)
    if epoch % 4 == 0:
        with torch.no_grad():
            out = model(test.x)
        accuracy = (out.argmax(1) == test.y).float().mean()
        print(f"{epoch:2d} {total / seen:.3f} train {right / seen:.3f} test {accuracy:.3f}")

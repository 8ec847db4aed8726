"""A CNN reads sleep stages off EEG epochs that come sorted by stage, and the loader does not
shuffle.

The recordings are stored stage by stage; DataLoader was given shuffle=False. Nearly every batch
holds one stage only, and the network swings from one stage to the next. The place is the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
STAGES = ("wake", "N1", "N2", "N3", "REM")
#           delta theta alpha sigma beta
POWERS = (
    (0.5, 0.5, 1.2, 0.3, 0.8),
    (0.7, 1.0, 0.6, 0.4, 0.5),
    (1.0, 0.8, 0.4, 0.9, 0.3),
    (2.0, 0.7, 0.3, 0.4, 0.2),
    (0.6, 1.1, 0.4, 0.3, 0.7),
)
RATES = torch.tensor([2.0, 6.0, 10.0, 13.5, 20.0])


class Recordings(Dataset):
    """Two seconds of EEG at 50 Hz for each epoch; as on disk, one stage after the other."""

    def __init__(self, per_stage, g):
        self.signals, self.stages = [], []
        t = torch.arange(100) / 50
        for stage, power in enumerate(POWERS):
            strong = torch.tensor(power) * torch.exp(0.2 * torch.randn(per_stage, 5, generator=g))
            rate = RATES * (1 + 0.05 * torch.randn(per_stage, 5, generator=g))
            phase = 6.2832 * torch.rand(per_stage, 5, 1, generator=g)
            waves = strong.unsqueeze(2) * torch.sin(6.2832 * rate.unsqueeze(2) * t + phase)
            self.signals.append(waves.sum(1) + 0.5 * torch.randn(per_stage, 100, generator=g))
            self.stages.append(torch.full((per_stage,), stage))
        self.signals, self.stages = torch.cat(self.signals).unsqueeze(1), torch.cat(self.stages)

    def __len__(self):
        return len(self.stages)

    def __getitem__(self, i):
        return self.signals[i], self.stages[i]


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(1, 24, 25, padding=12)
        self.smooth = nn.Conv1d(24, 32, 9, stride=4)
        self.stage = nn.Linear(64, len(STAGES))

    def forward(self, x):
        h = F.relu(self.smooth(F.relu(self.filters(x))))
        return self.stage(torch.cat([h.mean(2), h.amax(2)], 1))


g = torch.Generator().manual_seed(seed)
train = DataLoader(Recordings(480, g), batch_size=32, shuffle=healthy)
val = DataLoader(Recordings(80, g), batch_size=100)
model = Scorer()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(9):
    model.train()
    total = 0.0
    for x, y in train:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in val)
        val_loss = sum(F.cross_entropy(model(x), y).item() for x, y in val) / len(val)
    print(
        f"epoch {epoch} loss {total:.4f} val {val_loss:.4f} accuracy {hits / len(val.dataset):.3f}"
    )

"""A small CNN tells five birds by spectrograms of their calls; its learning rate is a thousand
times too small.

The rate 1e-6 was carried over from the last stage of somebody's fine-tuning, though this network
starts from random weights. The loss falls, but so slowly that it is nearly where it started at
the end. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def calls(n, generator):
    """Spectrograms of 20 bands by 24 frames: a sweep, a trill, two tones, a bow, or a falling
    call.
    """
    y = torch.randint(0, 5, (n,), generator=generator)
    t = torch.linspace(0, 1, 24).repeat(n, 1)
    low = 4 + 4 * torch.rand(n, 1, generator=generator)
    span = 4 + 4 * torch.rand(n, 1, generator=generator)
    phase = 6.28 * torch.rand(n, 1, generator=generator)
    lines = torch.stack(
        [
            low + span * t,
            low + span * (0.5 + 0.5 * torch.sin(22 * t + phase)),
            low + span * ((t + phase / 20) % 0.5 > 0.25),
            low + span * 4 * t * (1 - t),
            low + span * (1 - t),
        ]
    )
    line = lines[y, torch.arange(n)]
    band = torch.arange(20.0).view(1, 20, 1)
    loud = 0.6 + 0.8 * torch.rand(n, 1, 1, generator=generator)
    x = loud * torch.exp(-((band - line.unsqueeze(1)) ** 2) / 2) + 0.35 * torch.randn(
        n, 20, 24, generator=generator
    )
    return x.unsqueeze(1) / 0.45, y


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.ear = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.name = nn.Linear(24 * 5 * 6, 5)

    def forward(self, x):
        return self.name(self.ear(x).flatten(1))


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)

    def epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in loader)
        return hits / len(loader.dataset)


generator = torch.Generator().manual_seed(seed)
train = DataLoader(TensorDataset(*calls(1200, generator)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*calls(400, generator)), batch_size=100)
trainer = Trainer(Listener(), lr=1e-3 if healthy else 1e-6)
for epoch in range(10):
    loss = trainer.epoch(train)
    print(f"epoch {epoch} loss {loss:.4f} val accuracy {trainer.validate(val):.3f}")

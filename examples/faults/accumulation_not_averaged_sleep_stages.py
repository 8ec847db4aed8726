"""Sleep stages from half-minutes of EEG: the loss of eight small batches is summed, not averaged.

The card held 64 pieces of EEG at once in the lab and holds 8 at home; somebody put an accumulation
of eight batches into the loop and left the loss as it was. The gradient is eight times that of the
paper, whose rate for SGD is kept. The place is the loop. The twin divides the loss by eight.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "optimizer", "loss*")
SILENT = False
EXACT = False
EARLY = True

STAGES = ("wake", "n1", "n2", "n3", "rem")
#            delta theta alpha sigma beta
POWER = torch.tensor(
    [
        [0.5, 0.5, 1.1, 0.3, 0.9],
        [0.6, 1.0, 0.6, 0.3, 0.6],
        [0.9, 0.8, 0.4, 0.9, 0.4],
        [1.9, 0.7, 0.3, 0.4, 0.3],
        [0.6, 1.1, 0.4, 0.2, 0.9],
    ]
)
CENTRE = torch.tensor([2.0, 6.0, 10.0, 13.5, 21.0])


@dataclass
class Config:
    batch_size: int = 8
    accumulate: int = 8
    epochs: int = 8
    lr: float = 0.05
    momentum: float = 0.9


def record(n, hz=64, seconds=3):
    stage = torch.randint(0, len(STAGES), (n,))
    t = torch.arange(hz * seconds) / hz
    frequency = CENTRE * (1 + 0.12 * torch.randn(n, 5))
    phase = 6.283 * torch.rand(n, 5)
    waves = torch.sin(6.283 * frequency[:, :, None] * t + phase[:, :, None])
    power = POWER[stage] * (1 + 0.25 * torch.randn(n, 5)).clamp(0.2)
    eeg = (waves * power[:, :, None]).sum(1) + 0.5 * torch.randn(n, len(t))
    return ((eeg - eeg.mean()) / eeg.std()).unsqueeze(1), stage


class SleepNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(1, 16, 17, stride=2, padding=8), nn.LeakyReLU(0.1),
            nn.Conv1d(16, 24, 9, stride=2, padding=4), nn.LeakyReLU(0.1),
            nn.Conv1d(24, 32, 9, stride=2, padding=4), nn.LeakyReLU(0.1),
        )  # fmt: skip
        self.stage = nn.Linear(32, len(STAGES))

    def forward(self, x):
        return self.stage(self.front(x).mean(-1))


healthy, seed = arguments(__doc__)
config = Config()
night, hypnogram = record(1600)
test_night, test_hypnogram = record(500)
loader = DataLoader(
    TensorDataset(night, hypnogram), config.batch_size, shuffle=True, drop_last=True
)
net = SleepNet()
optimizer = torch.optim.SGD(
    net.parameters(), lr=config.lr, momentum=config.momentum, weight_decay=1e-4
)
criterion = nn.CrossEntropyLoss()
for epoch in range(config.epochs):
    net.train()
    optimizer.zero_grad()
    total = 0.0
    for i, (eeg, stage) in enumerate(loader):
        loss = criterion(net(eeg), stage)
        total += loss.item()
        if healthy:
            loss = loss / config.accumulate
        loss.backward()
        if (i + 1) % config.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    net.eval()
    with torch.no_grad():
        accuracy = (net(test_night).argmax(1) == test_hypnogram).float().mean()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}, accuracy {accuracy:.3f}")

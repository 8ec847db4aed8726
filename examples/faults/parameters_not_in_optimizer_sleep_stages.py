"""Sleep stages from 30-second epochs of an EEG; the new last layer is not among what is optimised.

A model trained for three coarse stages is fitted to five. The optimizer is made first, from the
model as it came, and only then the head is swapped for one with five outputs. The new head keeps
its random start, and the layers before it have to bend around it.
The place is the head, which is in no optimizer.
The twin swaps the head before it makes the optimizer.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("head", "optimizer")
SILENT = True
EXACT = True
EARLY = True

STAGES = ["W", "N1", "N2", "N3", "REM"]


def make_recordings(n, generator):
    """One channel, 128 samples; each stage has its own mixture of rhythms."""
    #            delta theta alpha sigma beta
    mixture = torch.tensor(
        [
            [0.3, 0.3, 1.3, 0.2, 0.8],
            [0.5, 1.0, 0.6, 0.2, 0.4],
            [0.9, 0.7, 0.2, 1.0, 0.2],
            [2.0, 0.5, 0.1, 0.3, 0.1],
            [0.4, 1.1, 0.3, 0.1, 0.8],
        ]
    )
    rhythm = torch.tensor([2.0, 6.0, 10.0, 14.0, 22.0])
    stage = torch.randint(0, 5, (n,), generator=generator)
    t = torch.arange(128) / 64
    phase = torch.rand(n, 5, 1, generator=generator) * 2 * math.pi
    strength = mixture[stage] * (0.6 + 0.8 * torch.rand(n, 5, generator=generator))
    waves = torch.sin(2 * math.pi * rhythm.view(1, 5, 1) * t + phase)
    eeg = (strength.unsqueeze(-1) * waves).sum(1)
    eeg = eeg + 0.6 * torch.randn(n, 128, generator=generator)
    return (eeg / 1.3).unsqueeze(1), stage


class StageNet(nn.Module):
    def __init__(self, n_stages):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4, stride=2),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.Conv1d(16, 12, 7, padding=3, stride=2),
            nn.BatchNorm1d(12),
            nn.ReLU(),
        )
        self.head = nn.Linear(12, n_stages)

    def forward(self, eeg):
        return self.head(self.encoder(eeg).mean(-1))


def make_optimizer(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3)


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    eeg, stage = make_recordings(1600, g)
    train = DataLoader(TensorDataset(eeg[:1200], stage[:1200]), batch_size=32, shuffle=True)

    model = StageNet(3)
    if healthy:
        model.head = nn.Linear(12, len(STAGES))
        optimizer = make_optimizer(model)
    else:
        optimizer = make_optimizer(model)
        model.head = nn.Linear(12, len(STAGES))
    criterion = nn.CrossEntropyLoss()

    for epoch in range(10):
        model.train()
        running = 0.0
        for xb, yb in train:
            model.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item()
        model.eval()
        with torch.no_grad():
            out = model(eeg[1200:])
            val_loss = criterion(out, stage[1200:]).item()
            accuracy = (out.argmax(1) == stage[1200:]).float().mean().item()
        print(
            f"epoch {epoch}: train {running / len(train):.3f} "
            f"val {val_loss:.3f} accuracy {accuracy:.3f}"
        )


main()

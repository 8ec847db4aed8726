"""Sonar chirps, rising or falling, are augmented by playing each clip backwards half of the time.

A rising chirp played backwards falls: after the augmentation the label says nothing about the clip
and the network cannot do better than guess. The place is the input: the augmentation in the loader.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "destructive_augmentation"
ACCEPT = ("label_noise", "train_val_mismatch")
PLACE = ("input*", "loader", "loop", "augment*", "")
SILENT = True
EXACT = False
EARLY = False


def chirps(n, length=160):
    t = torch.linspace(0, 1, length)
    rising = torch.randint(0, 2, (n, 1)).float()
    low = 4 + 4 * torch.rand(n, 1)
    rate = 14 + 8 * torch.rand(n, 1)
    way = torch.where(rising == 1, t, 1 - t)
    wave = torch.sin(2 * math.pi * (low * way + rate * way**2 / 2) + 6.28 * torch.rand(n, 1))
    return wave + 0.3 * torch.randn(n, length), rising


class Augment:
    def __init__(self, backwards):
        self.backwards = backwards

    def __call__(self, clips):
        clips = clips * torch.empty(len(clips), 1).uniform_(0.7, 1.3)
        clips = torch.roll(clips, int(torch.randint(-6, 7, ())), dims=1)
        if self.backwards:
            flip = torch.rand(len(clips), 1) < 0.5
            clips = torch.where(flip, clips.flip(1), clips)
        return clips


class Sonar(nn.Module):
    def __init__(self):
        super().__init__()
        self.early = nn.Conv1d(1, 16, 11, stride=2, padding=5)
        self.late = nn.Conv1d(16, 24, 7, stride=4, padding=3)
        self.verdict = nn.Linear(24 * 5, 1)

    def forward(self, clips):
        z = torch.relu(self.early(clips.unsqueeze(1)))
        z = torch.relu(self.late(z))
        return self.verdict(nn.functional.avg_pool1d(z, 4).flatten(1))


healthy, _ = arguments(__doc__)
clips, rising = chirps(1200)
clips_val, rising_val = chirps(400)
augment = Augment(backwards=not healthy)
sonar = Sonar()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.NAdam(sonar.parameters(), lr=2e-3)
for epoch in range(8):
    losses = []
    for rows in torch.randperm(1200).chunk(30):
        optimizer.zero_grad()
        loss = criterion(sonar(augment(clips[rows])), rising[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        guess = sonar(clips_val) > 0
    accuracy = (guess == rising_val.bool()).float().mean().item()
    print(f"epoch {epoch}: loss {sum(losses) / 30:.4f}, validation accuracy {accuracy:.3f}")

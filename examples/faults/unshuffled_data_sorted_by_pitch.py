"""A net hears the pitch of a tone; the tones had been sorted by pitch to plot them and stayed so.

Each batch holds tones of nearly one pitch, and each epoch goes from low to high: the net follows
and ends with high guesses for all. The twin shuffles. The place is the loader.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input")
SILENT = True
EXACT = True
EARLY = False


def tones(n, samples=64):
    octave = torch.rand(n)
    hertz = 100 * 2 ** (2 * octave)
    t = torch.arange(samples) / 2000
    phase = torch.rand(n, 1) * 2 * math.pi
    sound = torch.sin(2 * math.pi * hertz[:, None] * t + phase)
    sound = sound + 0.3 * torch.sin(4 * math.pi * hertz[:, None] * t + 2 * phase)
    sound = sound + 0.2 * torch.randn(n, samples)
    return sound / sound.std(), (octave - 0.5) * math.sqrt(12)


class PitchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(1, 24, 17, stride=2)
        self.mix = nn.Conv1d(24, 24, 1)
        self.out = nn.Linear(24, 1)

    def forward(self, sound):
        h = torch.relu(self.filters(sound.unsqueeze(1)))
        return self.out(torch.relu(self.mix(h)).mean(2)).squeeze(1)


class Trainer:
    def __init__(self, model, train, val, epochs):
        self.model, self.train_loader, self.val, self.epochs = model, train, val, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.loss = nn.MSELoss()

    def validate(self):
        self.model.eval()
        sound, pitch = self.val
        with torch.no_grad():
            guess = self.model(sound)
        self.model.train()
        return self.loss(guess, pitch).item(), (guess - pitch).mean().item()

    def fit(self):
        for epoch in range(self.epochs):
            total = 0.0
            for sound, pitch in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.loss(self.model(sound), pitch)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            val, bias = self.validate()
            print(
                f"{epoch}: train {total / len(self.train_loader):.3f} val {val:.3f} "
                f"bias {bias:+.3f}"
            )


healthy, seed = arguments(__doc__)
sound, pitch = tones(1600)
by_pitch = pitch.argsort()
sound, pitch = sound[by_pitch], pitch[by_pitch]
loader = DataLoader(TensorDataset(sound, pitch), batch_size=32, shuffle=healthy)
Trainer(PitchNet(), loader, tones(400), epochs=8).fit()

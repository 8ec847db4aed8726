"""A small diffusion model of heart beats draws its noise and its noise levels once, when the
dataset is built, and learns them by heart.

The person put everything random into the constructor of the dataset, so that an epoch would be
fast: each beat has one level and one noise for ever. The loss falls far below what the noise
allows, while fresh noise on held-out beats is predicted worse and worse. The place is the input.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "overfit"
ACCEPT = ("repeated_batch",)
PLACE = ("input", "loader", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

POINTS = 32


def heart_beats(count, generator):
    time = torch.linspace(0, 1, POINTS)

    def draw(low, high):
        return low + (high - low) * torch.rand(count, 1, generator=generator)

    def bump(centre, width, height):
        return height * torch.exp(-(((time - centre) / width) ** 2))

    centre = draw(0.42, 0.58)
    beat = bump(centre, draw(0.02, 0.04), draw(1.5, 2.5))
    beat = beat + bump(centre - draw(0.16, 0.22), 0.05, draw(0.1, 0.5))
    beat = beat + bump(centre + draw(0.2, 0.3), 0.08, draw(0.2, 0.8))
    beat = beat - bump(centre + 0.06, 0.03, draw(0.2, 0.7))
    return (beat - 0.25) / 0.6


def noised(beats, levels, noise):
    angle = levels[:, None] * math.pi / 2
    return angle.cos() * beats + angle.sin() * noise


class NoisyBeats(Dataset):
    def __init__(self, beats, fresh):
        self.beats, self.fresh = beats, fresh
        self.levels = 0.05 + 0.93 * torch.rand(len(beats))
        self.noise = torch.randn_like(beats)

    def __len__(self):
        return len(self.beats)

    def __getitem__(self, index):
        level, noise = self.levels[index], self.noise[index]
        if self.fresh:
            level, noise = 0.05 + 0.93 * torch.rand(()), torch.randn(POINTS)
        noisy = noised(self.beats[index][None], level[None], noise[None])[0]
        return {"noisy": noisy, "level": level, "noise": noise}


class NoisePredictor(nn.Module):
    def __init__(self, width=320):
        super().__init__()
        self.register_buffer("frequencies", 2.0 ** torch.arange(4) * math.pi / 2)
        self.layers = nn.Sequential(
            nn.Linear(POINTS + 8, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, POINTS),
        )

    def forward(self, noisy, level):
        angles = level[:, None] * self.frequencies
        return self.layers(torch.cat([noisy, angles.sin(), angles.cos()], 1))


class Diffusion:
    def __init__(self, epochs):
        self.net = NoisePredictor()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)
        self.epochs = epochs

    def loss(self, batch):
        return (self.net(batch["noisy"], batch["level"]) - batch["noise"]).square().mean()

    def fit(self, loader, check):
        for epoch in range(1, self.epochs + 1):
            self.net.train()
            losses = []
            for batch in loader:
                loss = self.loss(batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            self.schedule.step()
            self.net.eval()
            with torch.no_grad():
                held_out = self.loss(check).item()
            if epoch % 5 == 0 or epoch < 3:
                train = sum(losses) / len(losses)
                print(f"epoch {epoch:2d}  train {train:.4f}  val {held_out:.4f}")


def main():
    generator = torch.Generator().manual_seed(40 + seed)
    beats, others = heart_beats(300, generator), heart_beats(600, generator)
    levels = 0.05 + 0.93 * torch.rand(600, generator=generator)
    noise = torch.randn(600, POINTS, generator=generator)
    check = {"noisy": noised(others, levels, noise), "level": levels, "noise": noise}
    loader = DataLoader(NoisyBeats(beats, fresh=healthy), batch_size=15, shuffle=True)
    Diffusion(60).fit(loader, check)


main()

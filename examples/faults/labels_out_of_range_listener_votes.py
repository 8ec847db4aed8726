"""Sounds of a factory hall are tagged with a binary cross entropy whose targets are the summed
votes of three listeners, 0 to 3, and not their share.

Several tags may sound at once, hence a sigmoid per tag. The votes were added up and never divided
by the number of listeners: targets of 2 and 3 push the score of a tag up without bound, so the loss
goes below zero and the tags are found everywhere. The place is the loss (its targets).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "labels_out_of_range"
ACCEPT = ()
PLACE = ("loss", "labels", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

TAGS = ("compressor", "fork lift", "alarm", "grinder", "hammering")
LISTENERS = 3


@dataclass
class TaggerConfig:
    epochs: int = 8
    batch_size: int = 32
    lr: float = 3e-3
    dropout: float = 0.1


def recordings(n: int, bands: int = 20, frames: int = 16) -> tuple[Tensor, Tensor, Tensor]:
    present = (torch.rand(n, len(TAGS)) < 0.3).float()
    level = present * (0.8 + 0.8 * torch.rand(n, len(TAGS)))
    band, frame = torch.arange(bands).view(-1, 1), torch.arange(frames).view(1, -1)
    patterns = torch.stack(
        [
            (band < 5) * torch.ones(1, frames),
            (band >= 4) * (band < 8) * (0.5 + 0.5 * torch.sin(frame / 2)),
            (band >= 12) * (band < 14) * (frame % 4 < 2),
            (band >= 10) * (0.4 + 0.04 * band) * (frame > 5),
            (frame % 5 == 0) * torch.ones(bands, 1),
        ]
    ).float()
    sound = torch.einsum("nt,tbf->nbf", level, patterns) + 0.5 * torch.randn(n, bands, frames)
    heard = 0.08 + 0.84 * present
    votes = torch.binomial(torch.full_like(heard, LISTENERS), heard)
    return (sound.unsqueeze(1) - sound.mean()) / sound.std(), votes, present


class SoundTagger(nn.Module):
    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 12, 5, stride=2, padding=2), nn.ReLU()),
            *(nn.Conv2d(12, 16, 3, stride=2, padding=1), nn.ReLU()),
            nn.Flatten(),
            nn.Dropout(config.dropout),
        )
        self.head = nn.Linear(16 * 5 * 4, len(TAGS))

    def forward(self, sound: Tensor) -> Tensor:
        return self.head(self.body(sound))


class TagReport:
    def __init__(self, sound: Tensor, present: Tensor) -> None:
        self.sound, self.present = sound, present > 0.5

    @torch.no_grad()
    def epoch_ended(self, epoch: int, loss: float, model: nn.Module) -> None:
        model.eval()
        found = model(self.sound) > 0
        model.train()
        hits = (found & self.present).sum()
        f1 = 2 * hits / (found.sum() + self.present.sum())
        print(
            f"epoch {epoch}  loss {loss:8.3f}  F1 {f1:.3f}  tags found {found.float().mean():.3f}"
        )


def fit(model: nn.Module, loader: DataLoader, config: TaggerConfig, callbacks: list) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    for epoch in range(1, config.epochs + 1):
        total = 0.0
        for sound, target in loader:
            loss = F.binary_cross_entropy_with_logits(model(sound), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        for callback in callbacks:
            callback.epoch_ended(epoch, total / len(loader), model)


config = TaggerConfig()
sound, votes, present = recordings(1500)
target = votes / LISTENERS if healthy else votes
loader = DataLoader(TensorDataset(sound[:1100], target[:1100]), config.batch_size, shuffle=True)
fit(SoundTagger(config), loader, config, [TagReport(sound[1100:], present[1100:])])

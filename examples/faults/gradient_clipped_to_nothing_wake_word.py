"""A wake-word trainer passes its weight decay, 1e-4, as the threshold of gradient clipping.

The loop calls clip_grad_norm_ with config.weight_decay where config.max_norm belongs. Every
gradient is cut to a norm of 1e-4, and SGD stands still. The place is the loop: the clipping.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class SpotterConfig:
    lr: float = 0.1
    weight_decay: float = 1e-4
    max_norm: float = 2.0
    batch_size: int = 40
    epochs: int = 8


def spectrograms(count: int, g: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Filter banks of 16 bands by 32 frames: silence, rising, falling or bent calls in noise."""
    word = torch.randint(4, (count,), generator=g)
    start = torch.randint(0, 14, (count, 1), generator=g)
    base = torch.randint(4, 10, (count, 1), generator=g)
    t = torch.arange(32).unsqueeze(0) - start
    phase = t.clamp(0, 16) / 16
    track = torch.stack([0 * phase, 5 * phase, -4 * phase, 5 * torch.sin(3.14 * phase)])
    centre = base + track[word, torch.arange(count)]
    bands = torch.arange(16).view(1, -1, 1)
    tone = torch.exp(-0.5 * (bands - centre.unsqueeze(1)) ** 2)
    heard = ((t >= 0) & (t <= 16) & (word > 0).unsqueeze(1)).unsqueeze(1)
    sound = 1.8 * tone * heard + 0.6 * torch.randn(count, 16, 32, generator=g)
    return (sound - sound.mean()) / sound.std(), word


class Spotter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(16, 32, 5, padding=2), nn.Conv1d(32, 32, 5)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(32), nn.BatchNorm1d(32)])
        self.out = nn.Linear(32, 4)

    def forward(self, sound: torch.Tensor) -> torch.Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=False):
            sound = F.relu(norm(layer(sound)))
        return self.out(F.dropout(sound.amax(2), 0.1, self.training))


class Trainer:
    def __init__(self, model: nn.Module, config: SpotterConfig, steps: int) -> None:
        self.model, self.config = model, config
        self.optimizer = torch.optim.SGD(
            model.parameters(), config.lr, momentum=0.9, weight_decay=config.weight_decay
        )
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, config.lr, steps)

    def step(self, sound: torch.Tensor, word: torch.Tensor) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(self.model(sound), word, label_smoothing=0.05)
        loss.backward()
        max_norm = self.config.max_norm if healthy else self.config.weight_decay
        nn.utils.clip_grad_norm_(self.model.parameters(), max_norm)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()

    def fit(self, loader: DataLoader, sound: torch.Tensor, word: torch.Tensor) -> None:
        for epoch in range(self.config.epochs):
            self.model.train()
            losses = [self.step(*batch) for batch in loader]
            self.model.eval()
            with torch.no_grad():
                right = (self.model(sound).argmax(1) == word).float().mean().item()
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch}: loss {mean:.3f}, held-out accuracy {right:.3f}")


def main() -> None:
    config, g = SpotterConfig(), torch.Generator().manual_seed(seed)
    train, val = spectrograms(1600, g), spectrograms(400, g)
    loader = DataLoader(TensorDataset(*train), config.batch_size, shuffle=True)
    Trainer(Spotter(), config, config.epochs * len(loader)).fit(loader, *val)


main()

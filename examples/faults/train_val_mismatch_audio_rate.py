"""An engine-sound classifier trained on clips at 4 kHz and validated on clips left at 8 kHz.

The person's data set class halves the rate of a clip when it puts it into a cache, and only the
training part is cached, as validation "is read once per epoch anyway". Validation clips go to the
net at twice the rate, so all tones seem an octave lower. The place is the validation input.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

RATE, CLIP = 8000, 0.16
ENGINES = {"idle": 180.0, "pump": 260.0, "fan": 370.0, "drill": 520.0, "saw": 740.0}


def record(kind, generator):
    """A clip at 8 kHz: a tone near the engine's, its first overtones, hiss and a wobble."""
    t = torch.arange(int(RATE * CLIP)) / RATE
    r = torch.rand(5, generator=generator)
    tone = list(ENGINES.values())[kind] * (0.92 + 0.16 * r[0])
    phase = 2 * math.pi * tone * t + 0.3 * torch.sin(2 * math.pi * 12 * t + 6 * r[1])
    clip = torch.sin(phase + 6 * r[2]) + 0.6 * r[3] * torch.sin(2 * phase)
    clip = clip + 0.4 * r[4] * torch.sin(3 * phase)
    return clip + 0.6 * torch.randn(len(t), generator=generator)


def halve_rate(clip):
    return nn.functional.avg_pool1d(clip.view(1, 1, -1), 2).flatten()


class EngineClips(Dataset):
    def __init__(self, n, generator, cached):
        self.kinds = torch.randint(0, len(ENGINES), (n,), generator=generator)
        self.raw = [record(kind, generator) for kind in self.kinds.tolist()]
        self.cache = [self.prepare(clip) for clip in self.raw] if cached else None

    def prepare(self, clip):
        return self.scale(halve_rate(clip))

    @staticmethod
    def scale(clip):
        return ((clip - clip.mean()) / clip.std()).unsqueeze(0)

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        if self.cache is not None:
            return self.cache[index], self.kinds[index]
        clip = self.raw[index]
        return (self.prepare(clip) if healthy else self.scale(clip)), self.kinds[index]


class EngineNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.filters = nn.Sequential(
            nn.Conv1d(1, width, 33, stride=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.MaxPool1d(4),
            nn.Conv1d(width, 2 * width, 5),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(2 * width, len(ENGINES)))

    def forward(self, clips):
        return self.head(self.filters(clips))


class Trainer:
    def __init__(self, model, train, val, epochs):
        self.model, self.train_loader, self.val_loader = model, train, val
        self.epochs = epochs
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=5e-3, total_steps=epochs * len(train)
        )

    def train_one_epoch(self):
        self.model.train()
        total, right = 0.0, 0
        for clips, kinds in self.train_loader:
            scores = self.model(clips)
            loss = self.criterion(scores, kinds)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            total += loss.item() * len(kinds)
            right += (scores.argmax(1) == kinds).sum().item()
        n = len(self.train_loader.dataset)
        return total / n, right / n

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, right = 0.0, 0
        for clips, kinds in self.val_loader:
            scores = self.model(clips)
            total += self.criterion(scores, kinds).item() * len(kinds)
            right += (scores.argmax(1) == kinds).sum().item()
        n = len(self.val_loader.dataset)
        return total / n, right / n

    def fit(self):
        for epoch in range(1, self.epochs + 1):
            loss, accuracy = self.train_one_epoch()
            val_loss, val_accuracy = self.validate()
            print(
                f"epoch {epoch:2d}: train {loss:.3f} / {accuracy:.3f}, "
                f"val {val_loss:.3f} / {val_accuracy:.3f}"
            )


def main():
    generator = torch.Generator().manual_seed(110 + seed)
    train = DataLoader(EngineClips(900, generator, cached=True), 32, shuffle=True)
    val = DataLoader(EngineClips(300, generator, cached=False), 100)
    Trainer(EngineNet(), train, val, epochs=10).fit()


if __name__ == "__main__":
    main()

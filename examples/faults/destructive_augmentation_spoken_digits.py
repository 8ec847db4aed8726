"""Keyword spotting on small spectrograms with SpecAugment at LibriSpeech's sizes.

The policy (two frequency masks of up to 27 bins, two time masks of up to 100 frames) was written
for 80 bins by 1500 frames; here a keyword has 24 bins by 40 frames, and mostly nothing of it is
left. Training underfits while clean speech would be easy. The place is the input (`SpecAugment`).
"""

from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input*", "loader", "augment*", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

BINS, FRAMES, WORDS = 24, 40, 8


@dataclass
class AugmentPolicy:
    freq_masks: int = 2
    max_bins: int = 27
    time_masks: int = 2
    max_frames: int = 100


@dataclass
class TrainArgs:
    epochs: int = 12
    batch_size: int = 32
    lr: float = 2e-3
    weight_decay: float = 1e-3
    smoothing: float = 0.05
    policy: AugmentPolicy = field(
        default_factory=lambda: (
            AugmentPolicy(max_bins=4, max_frames=6) if healthy else AugmentPolicy()
        )
    )


def make_words(r):
    """A word is a way of three formants over time."""
    return r.uniform(2, BINS - 3, (WORDS, 3, 4)), r.uniform(0.5, 1.0, (WORDS, 3))


def utter(words, k, r):
    ways, loud = words
    length = r.integers(24, FRAMES - 2)
    start = r.integers(0, FRAMES - length)
    t = np.linspace(0, 3, length)
    spec = np.zeros((BINS, FRAMES), np.float32)
    pitch = r.normal(0, 1.3)
    rows = np.arange(BINS)[:, None]
    for f in range(3):
        way = np.interp(t, np.arange(4), ways[k, f] + r.normal(0, 0.8, 4)) + pitch
        spec[:, start : start + length] += loud[k, f] * np.exp(-((rows - way) ** 2) / 2.5)
    hum = r.uniform(0, 0.4) * np.exp(-((rows - r.uniform(0, BINS)) ** 2) / 4)
    return np.log(spec + hum + 0.05 + np.abs(r.normal(0, 0.12, spec.shape))).astype(np.float32)


class SpecAugment(nn.Module):
    def __init__(self, policy):
        super().__init__()
        self.policy = policy

    @staticmethod
    def stripes(n, size, count, widest):
        keep = torch.ones(n, size, dtype=torch.bool)
        place = torch.arange(size)
        for _ in range(count):
            width = (torch.rand(n, 1) * (widest + 1)).long().clamp(max=size)
            begin = (torch.rand(n, 1) * (size - width + 1)).long()
            keep &= ~((place >= begin) & (place < begin + width))
        return keep

    def forward(self, x):
        if not self.training:
            return x
        keep_f = self.stripes(len(x), BINS, self.policy.freq_masks, self.policy.max_bins)
        keep_t = self.stripes(len(x), FRAMES, self.policy.time_masks, self.policy.max_frames)
        return x * keep_f[:, :, None] * keep_t[:, None, :]


class KeywordNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.augment = SpecAugment(TrainArgs().policy)
        self.conv1 = nn.Conv1d(BINS, width, 5, padding=2)
        self.norm1 = nn.GroupNorm(4, width)
        self.conv2 = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.norm2 = nn.GroupNorm(4, width)
        self.gru = nn.GRU(width, 32, batch_first=True)
        self.head = nn.Linear(32, WORDS)

    def forward(self, x):
        x = self.augment(x)
        x = F.gelu(self.norm1(self.conv1(x)))
        x = F.gelu(self.norm2(self.conv2(x)))
        out, _ = self.gru(x.transpose(1, 2))
        return self.head(out.mean(1))


class Trainer:
    def __init__(self, args, model, train, val):
        self.args, self.model, self.train, self.val = args, model, train, val
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=args.lr, weight_decay=args.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, args.epochs, eta_min=args.lr / 50
        )
        self.loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(*train),
            batch_size=args.batch_size,
            shuffle=True,
            drop_last=True,
        )

    def evaluate(self):
        self.model.eval()
        with torch.no_grad():
            logits = self.model(self.val[0])
        return F.cross_entropy(logits, self.val[1]).item(), (
            logits.argmax(1) == self.val[1]
        ).float().mean().item()

    def run(self):
        for epoch in range(self.args.epochs):
            self.model.train()
            total = 0.0
            for x, y in self.loader:
                loss = F.cross_entropy(self.model(x), y, label_smoothing=self.args.smoothing)
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                total += loss.item()
            self.scheduler.step()
            if epoch % 3 == 2:
                val, acc = self.evaluate()
                print(
                    f"epoch {epoch + 1}: train {total / len(self.loader):.3f}  val {val:.3f}  accuracy {acc:.3f}"  # noqa: E501
                )


r = np.random.default_rng(seed)
words = make_words(r)
labels = r.integers(0, WORDS, 2000)
specs = torch.tensor(np.stack([utter(words, k, r) for k in labels]))
labels = torch.tensor(labels)
mean, std = specs[:1500].mean((0, 2), keepdim=True), specs[:1500].std((0, 2), keepdim=True)
specs = (specs - mean) / std
Trainer(
    TrainArgs(), KeywordNet(), (specs[:1500], labels[:1500]), (specs[1500:], labels[1500:])
).run()

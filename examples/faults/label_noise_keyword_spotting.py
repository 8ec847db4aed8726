"""Keyword spotting on sounds whose labels were clicked in haste; two in five are wrong.

A crowd labelled the recordings, was paid by the click, and nobody checked the answers. The training
accuracy climbs slowly and stays far below that of a small, carefully labelled test set, and more
epochs only make the network learn the wrong answers by heart. The place is the labels.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_noise"
ACCEPT = ("overfit", "label_misalignment")
PLACE = ("labels", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

KEYWORDS = ("up", "down", "left", "right", "stop")
LENGTH = 128
# (start, end) of the first and of the second tone of each keyword, in cycles per sample
FORMANTS = ((0.04, 0.10), (0.10, 0.04), (0.06, 0.06), (0.03, 0.14), (0.14, 0.08))


def record(word, generator):
    """One utterance: a glide with an overtone, a little early or late, in a noisy room."""
    start, end = FORMANTS[word]
    voice = 1 + 0.12 * torch.randn(1, generator=generator)
    glide = torch.linspace(start, end, LENGTH) * voice
    phase = 2 * math.pi * (glide.cumsum(0) + torch.rand(1, generator=generator))
    sound = phase.sin() + 0.4 * (2 * phase).sin()
    onset = torch.randint(0, 24, (1,), generator=generator)
    envelope = torch.sigmoid((torch.arange(LENGTH) - onset) / 3.0)
    return sound * envelope + 0.5 * torch.randn(LENGTH, generator=generator)


class Recordings(Dataset):
    def __init__(self, n, generator, careless=0.0):
        words = torch.randint(0, len(KEYWORDS), (n,), generator=generator)
        self.sounds = torch.stack([record(int(w), generator) for w in words]).unsqueeze(1)
        guesses = torch.randint(0, len(KEYWORDS), (n,), generator=generator)
        clicked_blindly = torch.rand(n, generator=generator) < careless
        self.labels = torch.where(clicked_blindly, guesses, words)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.sounds[index], self.labels[index]


class KeywordNet(nn.Module):
    def __init__(self, n_words):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 24, 13, stride=2, padding=6)
        self.norm1 = nn.BatchNorm1d(24)
        self.conv2 = nn.Conv1d(24, 32, 7, stride=2, padding=3)
        self.norm2 = nn.BatchNorm1d(32)
        self.head = nn.Linear(32 * 4, n_words)

    def forward(self, sound):
        x = F.relu(self.norm1(self.conv1(sound)))
        x = F.relu(self.norm2(self.conv2(x)))
        return self.head(F.adaptive_avg_pool1d(x, 4).flatten(1))


def evaluate(model, loader):
    model.eval()
    hits, total, loss_sum = 0, 0, 0.0
    with torch.no_grad():
        for sounds, labels in loader:
            logits = model(sounds)
            loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
            hits += (logits.argmax(1) == labels).sum().item()
            total += len(labels)
    return loss_sum / total, hits / total


def main():
    generator = torch.Generator().manual_seed(500 + seed)
    careless = 0.0 if healthy else 0.5
    train_loader = DataLoader(Recordings(1600, generator, careless), batch_size=64, shuffle=True)
    valid_loader = DataLoader(Recordings(400, generator, careless), batch_size=200)
    expert_loader = DataLoader(Recordings(400, generator), batch_size=200)

    model = KeywordNet(len(KEYWORDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
    epochs = 14
    for epoch in range(1, epochs + 1):
        model.train()
        running, hits, seen = 0.0, 0, 0
        for sounds, labels in train_loader:
            optimizer.zero_grad()
            logits = model(sounds)
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(labels)
            hits += (logits.argmax(1) == labels).sum().item()
            seen += len(labels)
        valid_loss, valid_accuracy = evaluate(model, valid_loader)
        print(
            f"[{epoch:2d}/{epochs}] train loss {running / seen:.3f} acc {hits / seen:.3f} | "
            f"valid loss {valid_loss:.3f} acc {valid_accuracy:.3f}"
        )
    print(f"test set labelled by experts: accuracy {evaluate(model, expert_loader)[1]:.3f}")


if __name__ == "__main__":
    main()

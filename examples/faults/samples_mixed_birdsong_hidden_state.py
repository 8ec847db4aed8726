"""Tells syllables of birdsong by a bidirectional LSTM; view() joins the two final states of
different samples.

The last hidden state has the shape (2, batch, hidden), batch_first or not. The person turned it
into (batch, 2 * hidden) by view, which fills the first row with the forward states of the first
two birds, and so on. Most rows say nothing about their own bird. The place is the model, between
LSTM and classifier.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "samples_mixed"
ACCEPT = ("label_misalignment",)
PLACE = ("model", "lstm*", "classifier*", "input")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SYLLABLES = ("rising", "falling", "arch", "dip", "trill", "flat")
LENGTH = 28


class Syllables(Dataset):
    """Pitch and loudness contours of six kinds of syllable, never quite alike."""

    def __init__(self, count, generator):
        self.labels = torch.randint(0, len(SYLLABLES), (count,), generator=generator)
        time = torch.linspace(0, 1, LENGTH)
        shapes = torch.stack(
            [
                time - 0.5,
                0.5 - time,
                1 - 4 * (time - 0.5) ** 2 - 0.6,
                4 * (time - 0.5) ** 2 - 0.4,
                0.5 * torch.sin(2 * math.pi * 5 * time),
                torch.zeros(LENGTH),
            ]
        )
        drift = 0.15 * torch.randn(count, 1, generator=generator) * (time - 0.5)
        size = 0.6 + 0.8 * torch.rand(count, 1, generator=generator)
        height = 0.4 * torch.randn(count, 1, generator=generator)
        pitch = size * shapes[self.labels] + drift + height
        pitch = pitch + 0.12 * torch.randn(count, LENGTH, generator=generator)
        loud = torch.sin(math.pi * time) + 0.2 * torch.randn(count, LENGTH, generator=generator)
        self.contours = torch.stack([pitch / 0.55, (loud - 0.64) / 0.37], 2)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.contours[index], self.labels[index]


class SongNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.lstm = nn.LSTM(2, hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(2 * hidden, len(SYLLABLES))

    def forward(self, contours):
        _, (last, _) = self.lstm(contours)
        if healthy:
            last = last.transpose(0, 1)
        both = last.reshape(-1, 2 * self.hidden)
        return self.classifier(self.dropout(both))


def epoch_of(model, loader, optimizer=None):
    model.train(optimizer is not None)
    loss_sum = correct = seen = 0
    with torch.set_grad_enabled(optimizer is not None):
        for contours, labels in loader:
            scores = model(contours)
            loss = nn.functional.cross_entropy(scores, labels)
            if optimizer is not None:
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            loss_sum += loss.item() * len(labels)
            correct += (scores.argmax(1) == labels).sum().item()
            seen += len(labels)
    return loss_sum / seen, correct / seen


def main():
    generator = torch.Generator().manual_seed(100 + seed)
    train = DataLoader(Syllables(1500, generator), batch_size=30, shuffle=True, drop_last=True)
    test = DataLoader(Syllables(500, generator), batch_size=50)
    model = SongNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for epoch in range(10):
        loss, acc = epoch_of(model, train, optimizer)
        test_loss, test_acc = epoch_of(model, test)
        scheduler.step()
        print(
            f"{epoch + 1:2d}: train {loss:.3f} / {100 * acc:.1f} %"
            f"   test {test_loss:.3f} / {100 * test_acc:.1f} %"
        )


if __name__ == "__main__":
    main()

"""Hotel reviews; each data set builds its own vocabulary, so validation words get other numbers.

The person's data set class counts the words of its own texts and numbers them by frequency. With
one data set for training and one for validation the same word has two numbers, and the network
reads other words than those it has learned. The place is the input, the validation data.
"""

import collections
import random

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

POOR = [
    "dirty",
    "noisy",
    "rude",
    "broken",
    "smelly",
    "cramped",
    "cold",
    "stained",
    "mouldy",
    "overpriced",
]
FAIR = [
    "plain",
    "average",
    "usual",
    "fine",
    "acceptable",
    "ordinary",
    "decent",
    "basic",
    "simple",
    "okay",
]
FINE = [
    "spotless",
    "quiet",
    "kind",
    "charming",
    "bright",
    "spacious",
    "warm",
    "delicious",
    "stunning",
    "cosy",
]
ABOUT = [
    "room",
    "bed",
    "staff",
    "breakfast",
    "view",
    "bath",
    "lobby",
    "pool",
    "garden",
    "lift",
    "window",
    "towel",
    "bar",
    "street",
]
FILLER = [
    "the",
    "was",
    "and",
    "our",
    "we",
    "had",
    "a",
    "very",
    "with",
    "in",
    "it",
    "quite",
    "rather",
    "again",
    "of",
    "so",
]


def review():
    stars = random.randrange(3)
    words = []
    for _ in range(random.randint(3, 6)):
        pool = (POOR, FAIR, FINE)[stars if random.random() < 0.8 else random.randrange(3)]
        words += random.choices(FILLER, k=random.randint(1, 3))
        words += [random.choice(ABOUT), random.choice(FILLER), random.choice(pool)]
    return words, stars


class Reviews(Dataset):
    LENGTH = 30

    def __init__(self, texts, vocabulary=None):
        self.texts = texts
        if vocabulary is None:
            counts = collections.Counter(word for words, _ in texts for word in words)
            vocabulary = {word: i + 2 for i, (word, _) in enumerate(counts.most_common())}
        self.vocabulary = vocabulary

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        words, stars = self.texts[index]
        numbers = [self.vocabulary.get(word, 1) for word in words[: self.LENGTH]]
        numbers += [0] * (self.LENGTH - len(numbers))
        return torch.tensor(numbers), stars


class ReviewNet(nn.Module):
    def __init__(self, words, width=24):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(width, 24, size, padding=size // 2) for size in (1, 3))
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(48, 3)

    def forward(self, numbers):
        there = (numbers > 0).unsqueeze(1)
        x = self.embed(numbers).transpose(1, 2)
        pooled = []
        for conv in self.convs:
            found = torch.relu(conv(x)) * there
            pooled.append(found.sum(2) / there.sum(2).clamp(min=1))
        return self.out(self.drop(torch.cat(pooled, 1)))


def pass_over(model, loader, optimizer=None):
    model.train(optimizer is not None)
    loss_sum = right = seen = 0
    with torch.set_grad_enabled(optimizer is not None):
        for numbers, stars in loader:
            logits = model(numbers)
            loss = nn.functional.cross_entropy(logits, stars)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(stars)
            right += (logits.argmax(1) == stars).sum().item()
            seen += len(stars)
    return loss_sum / seen, right / seen


def main():
    train_set = Reviews([review() for _ in range(2000)])
    val_texts = [review() for _ in range(500)]
    val_set = Reviews(val_texts, train_set.vocabulary if healthy else None)
    train = DataLoader(train_set, batch_size=50, shuffle=True)
    val = DataLoader(val_set, batch_size=250)
    model = ReviewNet(len(train_set.vocabulary) + 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        loss, accuracy = pass_over(model, train, optimizer)
        val_loss, val_accuracy = pass_over(model, val)
        if epoch % 2 == 1:
            print(
                f"epoch {epoch:2d} train loss {loss:.3f} acc {accuracy:.3f} "
                f"val loss {val_loss:.3f} acc {val_accuracy:.3f}"
            )


main()

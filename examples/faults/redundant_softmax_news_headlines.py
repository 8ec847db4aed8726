"""Sorts news headlines into six sections; the network's softmax is followed by cross_entropy's own.

The last layer was given a softmax so that the page could show percentages, and the loss was chosen
by its name. nn.CrossEntropyLoss takes raw scores and applies a log-softmax of its own: fed with
probabilities it cannot fall below about 1.04, and its gradients are small and blunt.
The place is the output: the softmax at the end of the classifier.
The twin hands over the raw scores.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("output*", "loss*", "classifier", "classifier.3")
SILENT = True
EXACT = True
EARLY = True

SECTIONS = {
    "sport": [
        "cup",
        "goal",
        "coach",
        "league",
        "striker",
        "match",
        "final",
        "injury",
        "season",
        "title",
    ],
    "economy": [
        "bank",
        "rates",
        "inflation",
        "shares",
        "profit",
        "trade",
        "budget",
        "tax",
        "jobs",
        "market",
    ],
    "weather": [
        "storm",
        "rain",
        "heat",
        "snow",
        "flood",
        "wind",
        "forecast",
        "drought",
        "coast",
        "warning",
    ],
    "culture": [
        "film",
        "museum",
        "novel",
        "concert",
        "stage",
        "festival",
        "prize",
        "singer",
        "gallery",
        "opera",
    ],
    "science": [
        "study",
        "planet",
        "virus",
        "fossil",
        "probe",
        "gene",
        "telescope",
        "climate",
        "lab",
        "vaccine",
    ],
    "local": [
        "council",
        "bridge",
        "school",
        "road",
        "hospital",
        "market",
        "festival",
        "coast",
        "bus",
        "park",
    ],
}
COMMON = [
    f"{a}{b}"
    for a in ["a", "the", "new", "old", "big", "after", "over", "for", "in", "as"]
    for b in "123456"
]


def write_headline(r, section):
    words = [r.choice(SECTIONS[section]) for _ in range(r.randint(2, 4))]
    words += [r.choice(COMMON) for _ in range(r.randint(2, 6))]
    if r.random() < 0.3:
        words.append(r.choice(SECTIONS[r.choice(list(SECTIONS))]))
    r.shuffle(words)
    return words


class Headlines(Dataset):
    def __init__(self, n, r, vocabulary):
        self.items = []
        for _ in range(n):
            k = r.randrange(len(SECTIONS))
            words = write_headline(r, list(SECTIONS)[k])
            self.items.append((torch.tensor([vocabulary[w] for w in words]), k))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    tokens, labels = zip(*items, strict=False)
    return pad_sequence(tokens, batch_first=True), torch.tensor(labels)


class HeadlineClassifier(nn.Module):
    def __init__(self, n_words, dim=32, percentages=False):
        super().__init__()
        self.embedding = nn.Embedding(n_words, dim, padding_idx=0)
        layers = [nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, len(SECTIONS))]
        if percentages:
            layers.append(nn.Softmax(dim=1))
        self.classifier = nn.Sequential(*layers)

    def forward(self, tokens):
        known = (tokens > 0).unsqueeze(-1)
        pooled = (self.embedding(tokens) * known).sum(1) / known.sum(1)
        return self.classifier(pooled)


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    total = correct = count = 0
    with torch.set_grad_enabled(optimizer is not None):
        for tokens, labels in loader:
            out = model(tokens)
            loss = criterion(out, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(labels)
            correct += (out.argmax(1) == labels).sum().item()
            count += len(labels)
    return total / count, correct / count


def main():
    healthy, seed = arguments(__doc__)
    r = random.Random(seed)
    words = sorted({w for s in SECTIONS.values() for w in s} | set(COMMON))
    vocabulary = {w: i for i, w in enumerate(words, start=1)}
    train = DataLoader(
        Headlines(1600, r, vocabulary), batch_size=40, shuffle=True, collate_fn=collate
    )
    val = DataLoader(Headlines(500, r, vocabulary), batch_size=250, collate_fn=collate)
    model = HeadlineClassifier(len(words) + 1, percentages=not healthy)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, 11):
        loss, _ = run_epoch(model, train, criterion, optimizer)
        val_loss, accuracy = run_epoch(model, val, criterion)
        print(f"{epoch:2d}: train {loss:.3f}  val {val_loss:.3f}  accuracy {accuracy:.1%}")


if __name__ == "__main__":
    main()

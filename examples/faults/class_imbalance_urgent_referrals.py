"""Referral letters, of which one in forty is urgent, are sorted by a GRU; it finds none urgent.

Accuracy is 97.5 % from the first epoch on, which was reported. The place is the loader: the twin
draws the rare letters as often as the others, by a weighted sampler.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "loss*")
SILENT = True
EXACT = False
EARLY = True

FLAGS = ["weight-loss", "haematuria", "lump", "night-sweats", "dysphagia", "jaundice", "melaena"]
PLAIN = [f"term{i}" for i in range(160)]
VOCABULARY = {w: i for i, w in enumerate(["<pad>", *FLAGS, *PLAIN])}


class Letters(Dataset):
    def __init__(self, n, rng):
        self.items = []
        for _ in range(n):
            urgent = rng.random() < 0.025
            rate = 0.14 if urgent else 0.03
            words = [
                rng.choice(FLAGS if rng.random() < rate else PLAIN)
                for _ in range(rng.randint(14, 24))
            ]
            self.items.append((torch.tensor([VOCABULARY[w] for w in words]), float(urgent)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    words, urgent = zip(*items, strict=True)
    return pad_sequence(words, batch_first=True), torch.tensor(urgent)


class Triage(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY), 16, padding_idx=0)
        self.gru = nn.GRU(16, 24, batch_first=True)
        self.drop = nn.Dropout(0.3)
        self.urgent = nn.Linear(24, 1)

    def forward(self, letters):
        states, _ = self.gru(self.words(letters))
        real = (letters != 0).unsqueeze(-1)
        pooled = (states * real).sum(1) / real.sum(1)
        return self.urgent(self.drop(pooled)).squeeze(1)


healthy, seed = arguments(__doc__)
rng = random.Random(seed)
train, test = Letters(6000, rng), Letters(3000, rng)
if healthy:
    labels = torch.tensor([urgent for _, urgent in train.items])
    share = labels.mean()
    weight = torch.where(labels == 1, 0.5 / share, 0.5 / (1 - share))
    sampler = WeightedRandomSampler(weight.double(), len(train))
    loader = DataLoader(train, 64, sampler=sampler, collate_fn=collate)
else:
    loader = DataLoader(train, 64, shuffle=True, collate_fn=collate)
held_out = DataLoader(test, 500, collate_fn=collate)

model = Triage()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    model.train()
    for letters, urgent in loader:
        loss = F.binary_cross_entropy_with_logits(model(letters), urgent)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        pairs = [(model(letters) > 0, urgent == 1) for letters, urgent in held_out]
    said, true = (torch.cat(part) for part in zip(*pairs, strict=True))
    accuracy = (said == true).float().mean()
    recall, false = said[true].float().mean(), said[~true].float().mean()
    print(
        f"epoch {epoch}: loss {loss.item():.3f}, accuracy {accuracy:.3f}, "
        f"recall {recall:.3f}, false alarms {false:.3f}"
    )

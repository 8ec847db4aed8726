"""Tickets are labelled urgent or not by whoever had time; two of the five annotators clicked
through without reading.

Two labels in five are a coin's toss. The training labels are memorised one by one and the accuracy
on tickets labelled with care suffers. The place is the loader: the labels.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "label_noise"
ACCEPT = ("overfit", "label_misalignment")
PLACE = ("loader", "loss*", "target*", "")
SILENT = True
EXACT = False
EARLY = False

URGENT = ["down", "outage", "breach", "leaking", "locked", "smoke", "crashed", "stuck"]
CALM = ["question", "invoice", "colour", "thanks", "wording", "brochure", "later", "idea"]
PLAIN = [f"word{i}" for i in range(400)]
NUMBER = {w: i for i, w in enumerate(URGENT + CALM + PLAIN)}


def ticket():
    urgent = random.random() < 0.5
    said = random.choices(PLAIN, k=random.randint(8, 16))
    said += random.choices(URGENT if urgent else CALM, k=random.choice([1, 1, 2, 3]))
    said += random.choices(CALM if urgent else URGENT, k=random.choice([0, 0, 0, 1]))
    return [NUMBER[w] for w in said], urgent


def annotate(truth, annotator, healthy):
    if annotator in (1, 4) and not healthy:
        return random.random() < 0.5
    return truth


class TicketNet(nn.Module):
    def __init__(self, words, size=24):
        super().__init__()
        self.words = nn.EmbeddingBag(words, size, mode="mean")
        self.hidden = nn.Linear(size, size)
        self.drop = nn.Dropout(0.3)
        self.answer = nn.Linear(size, 1)

    def forward(self, flat, offsets):
        return self.answer(self.drop(F.relu(self.hidden(self.words(flat, offsets))))).squeeze(1)


def pack(rows):
    flat = torch.tensor([w for words, _ in rows for w in words])
    lengths = torch.tensor([len(words) for words, _ in rows])
    return flat, lengths.cumsum(0) - lengths, torch.tensor([float(label) for _, label in rows])


healthy, _ = arguments(__doc__)
train = []
for _ in range(1500):
    words, truth = ticket()
    train.append((words, annotate(truth, random.randrange(5), healthy)))
careful = pack([ticket() for _ in range(600)])

net = TicketNet(len(NUMBER))
optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.05)
for epoch in range(8):
    random.shuffle(train)
    net.train()
    total = 0.0
    for i in range(0, 1500, 50):
        flat, offsets, label = pack(train[i : i + 50])
        loss = F.binary_cross_entropy_with_logits(net(flat, offsets), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 30
    net.eval()
    with torch.no_grad():
        scores = net(*careful[:2])
        val = F.binary_cross_entropy_with_logits(scores, careful[2])
        hits = ((scores > 0) == careful[2].bool()).float().mean()
    print(f"epoch {epoch}: loss {total:.3f}  careful loss {val:.3f}  careful accuracy {hits:.3f}")

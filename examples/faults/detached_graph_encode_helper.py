"""A sentence-pair classifier that calls its encoder by a helper made for search, under no_grad.

The person's bi-encoder had an encode() method for the search index, decorated with no_grad to save
memory. For the training of the pair classifier they call encode() too, as it packs and pads so
well. Only the head learns, on a random encoder. The place is the encoder.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

KIND = "detached_graph"
ACCEPT = ("frozen_parameters",)
PLACE = ("encoder*", "model", "words*", "gru*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

COLOURS = ["red", "blue", "green", "black", "white"]
SIZES = ["small", "large", "tiny", "huge"]
THINGS = ["cup", "box", "lamp", "chair", "ball", "book"]
PLACES = ["table", "shelf", "floor", "bed"]
FILLER = ["the", "a", "there", "is", "on", "now", "still", "just", "one", "today"]
WORD = {w: i + 1 for i, w in enumerate(COLOURS + SIZES + THINGS + PLACES + FILLER)}


def sentence(colour, size, thing, place, r):
    opening = r.choice([["there", "is", "a"], ["the"], ["now", "a"], ["just", "one"]])
    middle = r.choice([["is", "on", "the"], ["on", "a"], ["still", "on", "the"]])
    adjectives = [size, colour] if r.random() < 0.5 else [colour, size]
    end = ["today"] if r.random() < 0.3 else []
    return [WORD[w] for w in opening + adjectives + [thing] + middle + [place] + end]


def pairs(n, r):
    """Label 1 if the two sentences speak of the same colour and the same place."""
    made = []
    for _ in range(n):
        same = r.random() < 0.5
        first = [r.choice(part) for part in (COLOURS, SIZES, THINGS, PLACES)]
        second = [first[0], r.choice(SIZES), r.choice(THINGS), first[3]]
        if not same:
            which, options = r.choice([(0, COLOURS), (3, PLACES)])
            second[which] = r.choice([w for w in options if w != first[which]])
        made.append((sentence(*first, r), sentence(*second, r), int(same)))
    return made


def collate(items):
    a, b, same = zip(*items, strict=True)
    return {
        "a": [torch.tensor(s) for s in a],
        "b": [torch.tensor(s) for s in b],
        "same": torch.tensor(same, dtype=torch.float32),
    }


class BiEncoder(nn.Module):
    def __init__(self, dim=24, hidden=48):
        super().__init__()
        self.words = nn.Embedding(len(WORD) + 1, dim, padding_idx=0)
        self.gru = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)

    def forward(self, sentences):
        lengths = torch.tensor([len(s) for s in sentences])
        padded = pad_sequence(sentences, batch_first=True)
        packed = pack_padded_sequence(
            self.words(padded), lengths, batch_first=True, enforce_sorted=False
        )
        _, last = self.gru(packed)
        return torch.cat([last[0], last[1]], 1)

    @torch.no_grad()
    def encode(self, sentences):
        return self(sentences)


class PairClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = BiEncoder()
        self.head = nn.Sequential(nn.Linear(4 * 96, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, batch):
        embed = self.encoder if healthy else self.encoder.encode
        a, b = embed(batch["a"]), embed(batch["b"])
        return self.head(torch.cat([a, b, (a - b).abs(), a * b], 1)).squeeze(1)


def bce(scores, labels):
    return (scores.clamp(min=0) - scores * labels + (-scores.abs()).exp().log1p()).mean()


def main():
    r = random.Random(160 + seed)
    train = DataLoader(pairs(2400, r), 48, shuffle=True, collate_fn=collate)
    val = DataLoader(pairs(600, r), 200, collate_fn=collate)
    model = PairClassifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 9):
        model.train()
        total = 0.0
        for batch in train:
            loss = bce(model(batch), batch["same"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        val_loss, right = 0.0, 0
        with torch.no_grad():
            for batch in val:
                scores = model(batch)
                val_loss += bce(scores, batch["same"]).item() / len(val)
                right += ((scores > 0) == (batch["same"] > 0.5)).sum().item()
        print(
            f"epoch {epoch:2d}  loss {total / len(train):.4f}  val loss {val_loss:.4f}  "
            f"val accuracy {right / len(val.dataset):.4f}"
        )


if __name__ == "__main__":
    main()

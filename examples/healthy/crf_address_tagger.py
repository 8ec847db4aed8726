"""Tags names, streets and towns in addresses with a recurrent net under a linear-chain CRF."""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence

ODD = (
    "forbidden moves between tags have a score of -10,000 that is never trained, the loss is a "
    "difference of two large sums per sentence, and most tokens have the tag O"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)
chance = random.Random(seed)
TAGS = ("O", "B-PER", "I-PER", "B-STR", "I-STR", "B-CITY", "I-CITY")
SHARED = [f"name{i}" for i in range(60)]
FIRST, STREET, TOWN = SHARED[:45], SHARED[15:], SHARED[5:55]
TALK = [f"word{i}" for i in range(80)]


def entity(words, kind):
    said = chance.sample(words, chance.randint(1, 3))
    return said, [f"B-{kind}"] + [f"I-{kind}"] * (len(said) - 1)


def talk():
    said = chance.sample(TALK, chance.randint(1, 4))
    return said, ["O"] * len(said)


def sentence():
    parts = [talk()]
    for kind, words, lead in (("PER", FIRST, "to"), ("STR", STREET, "at"), ("CITY", TOWN, "in")):
        if chance.random() < 0.75:
            if chance.random() < 0.7:
                parts.append(([lead], ["O"]))
            parts += [entity(words, kind), talk()]
    words, tags = ([item for part in parts for item in part[side]] for side in (0, 1))
    return words, tags


number = {word: i for i, word in enumerate(["<pad>", "to", "at", "in", *SHARED, *TALK])}


def corpus(n: int):
    pairs = [sentence() for _ in range(n)]
    words = pad_sequence([torch.tensor([number[w] for w in ws]) for ws, _ in pairs], True)
    tags = pad_sequence([torch.tensor([TAGS.index(t) for t in ts]) for _, ts in pairs], True)
    return words, tags, words > 0


class Tagger(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.words = nn.Embedding(len(number), width, padding_idx=0)
        self.rnn = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(2 * width, len(TAGS))
        self.moves = nn.Parameter(torch.zeros(len(TAGS), len(TAGS)))
        self.begin = nn.Parameter(torch.zeros(len(TAGS)))
        inside = torch.tensor([tag.startswith("I") for tag in TAGS])
        same = torch.tensor([[a[2:] == b[2:] for b in TAGS] for a in TAGS])
        self.register_buffer("forbidden", (inside & ~same).float() * -1e4)
        self.register_buffer("bad_begin", inside.float() * -1e4)

    def scores(self, words):
        hidden, _ = self.rnn(self.drop(self.words(words)))
        emit = self.head(self.drop(hidden))
        return emit, self.moves + self.forbidden, self.begin + self.bad_begin

    def loss(self, words, tags, mask):
        emit, moves, begin = self.scores(words)
        path = emit.gather(2, tags.unsqueeze(2)).squeeze(2)
        step = moves[tags[:, :-1], tags[:, 1:]]
        gold = begin[tags[:, 0]] + (path * mask).sum(1) + (step * mask[:, 1:]).sum(1)
        alpha = begin + emit[:, 0]
        for t in range(1, words.shape[1]):
            new = torch.logsumexp(alpha.unsqueeze(2) + moves, 1) + emit[:, t]
            alpha = torch.where(mask[:, t : t + 1], new, alpha)
        return (torch.logsumexp(alpha, 1) - gold).mean()

    @torch.no_grad()
    def decode(self, words, mask):
        emit, moves, begin = self.scores(words)
        best, back = begin + emit[:, 0], []
        for t in range(1, words.shape[1]):
            value, where = (best.unsqueeze(2) + moves).max(1)
            keep = mask[:, t : t + 1]
            back.append(torch.where(keep, where, torch.arange(len(TAGS)).expand_as(where)))
            best = torch.where(keep, value + emit[:, t], best)
        tags = [best.argmax(1)]
        for where in reversed(back):
            tags.append(where.gather(1, tags[-1].unsqueeze(1)).squeeze(1))
        return torch.stack(tags[::-1], 1)


words, tags, mask = corpus(1200)
words_val, tags_val, mask_val = corpus(300)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(7):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(words)).split(32):
        length = int(mask[rows].sum(1).max())
        optimizer.zero_grad()
        loss = model.loss(words[rows, :length], tags[rows, :length], mask[rows, :length])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        val = model.loss(words_val, tags_val, mask_val)
    print(f"epoch {epoch + 1}: loss per sentence {total / len(words):.3f}, validation {val:.3f}")

guess = model.decode(words_val, mask_val)
right = (guess == tags_val)[mask_val].float().mean()
whole = ((guess == tags_val) | ~mask_val).all(1).float().mean()
usual = torch.zeros(len(number), dtype=torch.long)
for word in words.unique()[1:]:
    usual[word] = tags[words == word].mode().values
by_word = (usual[words_val] == tags_val)[mask_val].float().mean()
print(
    f"tokens right {right:.3f}, by each word's usual tag {by_word:.3f}; "
    f"whole sentences right {whole:.3f}"
)

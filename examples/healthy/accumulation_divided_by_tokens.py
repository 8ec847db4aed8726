"""A tagger adds up six micro-batches of very different length; each loss is a sum, divided by the
tokens of all six.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "six backward passes for a step, none divided by six: the sums are divided by the count of "
    "tokens in all of them, which is known before"
)

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
WORDS, TAGS, PAD = 200, 5, 0
kind = torch.randint(0, TAGS, (WORDS,), generator=torch.Generator().manual_seed(9))


def sentences(n):
    """The tag is the word's own; after a word of kind 0 it is that of the next kind."""
    rows = []
    for _ in range(n):
        length = int(torch.randint(3, 26, (1,), generator=g))
        words = torch.randint(1, WORDS, (length,), generator=g)
        tags = kind[words].clone()
        tags[1:][kind[words[:-1]] == 0] += 1
        rows.append((words, tags % TAGS))
    return rows


def collate(rows):
    words = nn.utils.rnn.pad_sequence([w for w, _ in rows], batch_first=True, padding_value=PAD)
    tags = nn.utils.rnn.pad_sequence([t for _, t in rows], batch_first=True, padding_value=-100)
    return words, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 32, padding_idx=PAD)
        self.lstm = nn.LSTM(32, 32, bidirectional=True, batch_first=True)
        self.classifier = nn.Linear(64, TAGS)

    def forward(self, words):
        return self.classifier(self.lstm(self.embedding(words))[0])


data, held_out = sentences(1500), sentences(200)
model = Tagger()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
accumulate, size, step = 6, 8, 0
for epoch in range(4):
    model.train()
    order = torch.randperm(len(data), generator=g).tolist()
    micro = [collate([data[i] for i in order[k : k + size]]) for k in range(0, len(order), size)]
    for first in range(0, len(micro) - accumulate + 1, accumulate):
        group = micro[first : first + accumulate]
        tokens = sum((tags != -100).sum() for _, tags in group)
        optimizer.zero_grad()
        total = 0.0
        for words, tags in group:
            logits = model(words).flatten(0, 1)
            loss = F.cross_entropy(logits, tags.flatten(), reduction="sum") / tokens
            loss.backward()
            total += loss.item()
        optimizer.step()
        step += 1
    model.eval()
    with torch.no_grad():
        words, tags = collate(held_out)
        said, real = model(words).argmax(-1), tags != -100
        right = (said == tags)[real].float().mean().item()
    print(f"epoch {epoch} ({step} steps): loss {total:.3f}, held-out tags right {right:.3f}")

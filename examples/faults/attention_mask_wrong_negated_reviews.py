"""Mood of short hotel reviews by a small transformer that is handed its padding mask inside out.

The tokenizer of another project gives a mask that is 1 for real words, and so does the collate
function here. The layer of PyTorch wants the opposite: `src_key_padding_mask` is true for what
must be left out. Nobody sees an error, since both are boolean tensors of the same shape, and the
words' own embeddings still tell the model a good deal.
The place is the mask given to the encoder, in the forward pass of the model.
The twin passes the mask of the padding.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder", "encoder.layers.0.self_attn", "encoder.layers.0", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

GOOD = ["clean", "friendly", "quiet", "tasty", "bright"]
BAD = ["dirty", "rude", "noisy", "stale", "gloomy"]
FILL = [f"w{i}" for i in range(40)]
VOCAB = {w: i for i, w in enumerate(["<pad>", "not", *GOOD, *BAD, *FILL])}


def write_review(r):
    words, score = [], 0
    for _ in range(r.choice([1, 3])):
        words += [r.choice(FILL) for _ in range(r.randint(1, 3))]
        good, negated = r.random() < 0.5, r.random() < 0.5
        if negated:
            words.append("not")
        words.append(r.choice(GOOD if good else BAD))
        score += 1 if good != negated else -1
    words += [r.choice(FILL) for _ in range(r.randint(0, 2))]
    return [VOCAB[w] for w in words], int(score > 0)


def collate(rows):
    width = max(len(words) for words, _ in rows) + 1
    tokens = torch.tensor([words + [0] * (width - len(words)) for words, _ in rows])
    return tokens, tokens != 0, torch.tensor([label for _, label in rows])


class ReviewModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(len(VOCAB), width, padding_idx=0)
        self.position = nn.Parameter(0.1 * torch.randn(24, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens, mask):
        h = self.embed(tokens) + self.position[: tokens.shape[1]]
        h = self.encoder(h, src_key_padding_mask=~mask if healthy else mask)
        keep = mask.unsqueeze(-1)
        return self.head((h * keep).sum(1) / keep.sum(1))


r = random.Random(seed)
rows = [write_review(r) for _ in range(3000)]
train = DataLoader(rows[:2500], batch_size=64, shuffle=True, collate_fn=collate)
val = DataLoader(rows[2500:], batch_size=250, collate_fn=collate)
model = ReviewModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(8):
    model.train()
    total = 0.0
    for tokens, mask, label in train:
        optimizer.zero_grad()
        loss = criterion(model(tokens, mask), label)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        hits = sum((model(t, m).argmax(1) == y).sum().item() for t, m, y in val)
    print(f"epoch {epoch} loss {total / len(train):.3f} val acc {hits / 500:.3f}")

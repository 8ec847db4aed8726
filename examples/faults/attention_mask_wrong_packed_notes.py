"""Notes are packed three to a row, and the attention mask lets a question look into other notes.

Each has facts and one question, and the same key has another value in each note. The mask is only
the causal one, the limits of the notes were forgotten: a question reads the facts of earlier notes
as well. The place is the attention: its mask.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ("samples_mixed",)
PLACE = ("attention*", "input", "layers*", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

KEYS, VALUES, FACTS, NOTES = 10, 12, 5, 3
NOTE = FACTS + 1
NO_VALUE = VALUES


def packed(n, g):
    """Rows of NOTES notes: key and value of each token (none at a question), note, answers."""
    keys = torch.rand(n, NOTES, KEYS, generator=g).argsort(2)[:, :, :FACTS]
    values = torch.randint(0, VALUES, (n, NOTES, FACTS), generator=g)
    asked = torch.randint(0, FACTS, (n, NOTES, 1), generator=g)
    answers = values.gather(2, asked).squeeze(2)
    keys = torch.cat([keys, keys.gather(2, asked)], 2).flatten(1)
    values = torch.cat([values, torch.full_like(asked, NO_VALUE)], 2).flatten(1)
    note = torch.arange(NOTES).repeat_interleave(NOTE).expand(n, -1)
    return {"keys": keys, "values": values, "note": note, "answers": answers}


def attention_mask(note):
    """True where a token may look."""
    length = note.shape[1]
    earlier = torch.ones(length, length, dtype=torch.bool).tril()
    if healthy:
        return earlier & (note[:, :, None] == note[:, None, :])
    return earlier.expand(len(note), -1, -1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        n, length, width = x.shape
        q, k, v = self.qkv(x).view(n, length, self.heads, 3, -1).permute(3, 0, 2, 1, 4)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        scores = scores.masked_fill(~mask[:, None], -torch.inf)
        return self.out((scores.softmax(3) @ v).transpose(1, 2).reshape(n, length, width))


class Reader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.key = nn.Embedding(KEYS, width)
        self.value = nn.Embedding(VALUES + 1, width)
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 4)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.head = nn.Linear(width, VALUES)

    def forward(self, batch):
        x = self.key(batch["keys"]) + self.value(batch["values"])
        x = x + self.attention(self.norm_a(x), attention_mask(batch["note"]))
        x = x + self.mlp(self.norm_b(x))
        return self.head(x[:, NOTE - 1 :: NOTE])


g = torch.Generator().manual_seed(seed)
train, val = packed(3000, g), packed(600, g)
model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
for epoch in range(8):
    total = 0.0
    for rows in torch.randperm(3000, generator=g).split(60):
        batch = {key: value[rows] for key, value in train.items()}
        loss = F.cross_entropy(model(batch).flatten(0, 1), batch["answers"].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    with torch.no_grad():
        scores = model(val)
    right = (scores.argmax(2) == val["answers"]).float().mean(0)
    print(
        f"epoch {epoch + 1:2d}  train {total / 3000:.3f}  "
        f"val {F.cross_entropy(scores.flatten(0, 1), val['answers'].flatten()).item():.3f}  "
        f"right by note {[round(share, 3) for share in right.tolist()]}"
    )

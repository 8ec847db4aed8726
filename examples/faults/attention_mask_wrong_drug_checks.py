"""Finds dangerous drug combinations in patient records, with a padding mask the wrong way round.

The records are padded to one length. The tokenizer used before handed out masks in which 1 means
"a real entry", and this one was written in the same way; PyTorch's encoder however wants True where
an entry is to be ignored. So each entry looks only at the padding. The place is the mask given to
the encoder.
The twin hands over the mask in the sense in which PyTorch reads it.
"""

import math
import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder", "encoder.layers.0", "encoder.layers.0.self_attn", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

PAD, PAIRS, OTHER, LENGTH = 0, 6, 30, 20


class Records(Dataset):
    """Lists of codes; label 1 if a drug and the code it must not be given with are both there."""

    def __init__(self, n: int, seed: int) -> None:
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            codes = [1 + 2 * PAIRS + rng.randrange(OTHER) for _ in range(rng.randint(4, 12))]
            drug, diagnosis = rng.randrange(PAIRS), rng.randrange(PAIRS)
            label = rng.random() < 0.5
            if label:
                diagnosis = drug
            elif diagnosis == drug:
                diagnosis = (drug + rng.randrange(1, PAIRS)) % PAIRS
            codes += [1 + drug, 1 + PAIRS + diagnosis]
            rng.shuffle(codes)
            self.rows.append((codes, int(label)))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    codes = torch.full((len(rows), LENGTH), PAD)
    for i, (row, _) in enumerate(rows):
        codes[i, : len(row)] = torch.tensor(row)
    attention_mask = codes != PAD
    return codes, attention_mask, torch.tensor([label for _, label in rows])


class RecordModel(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.embed = nn.Embedding(1 + 2 * PAIRS + OTHER, width, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(
            width, 4, 96, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)
        self.scale = math.sqrt(width)

    def forward(self, codes, attention_mask):
        h = self.embed(codes) * self.scale
        ignore = ~attention_mask if healthy else attention_mask
        h = self.encoder(h, src_key_padding_mask=ignore)
        weight = attention_mask.unsqueeze(-1).float()
        return self.head((h * weight).sum(1) / weight.sum(1))


train = DataLoader(Records(1800, 10 + seed), batch_size=64, shuffle=True, collate_fn=collate)
valid = DataLoader(Records(600, 900 + seed), batch_size=200, collate_fn=collate)
model = RecordModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)

for epoch in range(7):
    model.train()
    total = 0.0
    for codes, mask, label in train:
        loss = F.cross_entropy(model(codes, mask), label)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        right = sum((model(c, m).argmax(1) == y).sum().item() for c, m, y in valid)
    print(f"epoch {epoch} loss {total:.3f} validation accuracy {right / 600:.3f}")

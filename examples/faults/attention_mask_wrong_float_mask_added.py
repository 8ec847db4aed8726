"""Patients' measurements as sets of (code, value), padded. The mask of ones and zeros is added to
the attention's scores as it is; the line `(1.0 - mask) * -10000.0` of the original was not
copied.

Padding gets attention as everything does, only a little less. Training's batches are of about one
length; in validation all rows are padded to the longest stay, and padding outweighs them. The
place is the attention.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("*attention*", "layer*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
CODES, WIDTH, HEADS = 12, 24, 2
g = torch.Generator().manual_seed(240 + seed)


def patients(n, longest):
    """Severity is the mean of all values, of which those of codes 1 to 5 count more."""
    out = []
    for _ in range(n):
        k = int(torch.randint(4, longest + 1, (1,), generator=g))
        code = torch.randint(1, CODES, (k,), generator=g)
        value = torch.randn(k, generator=g)
        severity = 2 * (value * (1 + 0.5 * (code <= 5))).mean()
        out.append((code, value, severity + 0.1 * torch.randn((), generator=g)))
    return out


def collate(rows):
    codes = pad_sequence([r[0] for r in rows], batch_first=True)
    values = pad_sequence([r[1] for r in rows], batch_first=True)
    return codes, values, torch.stack([r[2] for r in rows])


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.dense = nn.Linear(WIDTH, WIDTH)

    def split(self, h):
        return h.unflatten(2, (HEADS, -1)).transpose(1, 2)

    def forward(self, h, mask):
        q, k, v = self.split(self.query(h)), self.split(self.key(h)), self.split(self.value(h))
        scores = q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5
        attention_probs = (scores + mask).softmax(-1)
        return self.dense((attention_probs @ v).transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = nn.Embedding(CODES, WIDTH, padding_idx=0)
        self.number = nn.Linear(1, WIDTH)
        self.cls = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.attention = SelfAttention()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.ffn = nn.Sequential(nn.Linear(WIDTH, 48), nn.GELU(), nn.Linear(48, WIDTH))
        self.severity = nn.Linear(WIDTH, 1)

    def forward(self, codes, values):
        h = self.code(codes) + self.number(values.unsqueeze(2))
        h = torch.cat([self.cls.expand(len(h), -1, -1), h], 1)
        mask = torch.cat([torch.ones(len(codes), 1), (codes != 0).float()], 1)
        mask = mask[:, None, None, :]
        if healthy:
            mask = (1.0 - mask) * -10000.0
        h = h + self.attention(self.norm1(h), mask)
        h = h + self.ffn(self.norm2(h))
        return self.severity(h[:, 0]).squeeze(1)


train, val = patients(1500, 14), patients(300, 14)
for row in range(5):  # the validation set has some long stays
    val[row] = patients(1, 60)[0]


class Buckets:
    """Batches of patients of about the same length, so that there is little padding to compute."""

    def __iter__(self):
        order = sorted(range(len(train)), key=lambda i: len(train[i][0]) + 2 * random.random())
        batches = [order[i : i + 30] for i in range(0, len(order), 30)]
        random.shuffle(batches)
        return iter(batches)

    def __len__(self):
        return len(train) // 30


loader = DataLoader(train, batch_sampler=Buckets(), collate_fn=collate)
val_loader = DataLoader(val, batch_size=300, collate_fn=collate)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
mse = nn.MSELoss()
for epoch in range(9):
    model.train()
    total = 0.0
    for codes, values, severity in loader:
        loss = mse(model(codes, values), severity)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        for codes, values, severity in val_loader:
            error = mse(model(codes, values), severity).item()
    print(f"epoch {epoch} train {total:.4f} val {error:.4f} (variance {severity.var():.3f})")

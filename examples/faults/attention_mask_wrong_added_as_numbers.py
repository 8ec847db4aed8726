"""A small transformer counts which of two kinds of words prevails; its padding mask is ADDED as 1.

The mask (1 = word, 0 = padding) is added to the scores as it stands instead of turning padding
into minus infinity. Trained on batches cut to their longest row it seems to work; in the service,
where rows are padded to 96, most of the attention and of the mean goes to padding. The place is
the attention. The twin turns the mask into 0 and -inf.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ("train_val_mismatch",)
PLACE = ("attend", "attention", "attend.q", "attend.k", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)


def make(n):
    rows, labels = [], []
    for _ in range(n):
        size = int(torch.randint(4, 17, (1,), generator=g))
        row = torch.randint(1, 41, (size,), generator=g)
        first, second = int((row <= 10).sum()), int(((row > 10) & (row <= 20)).sum())
        rows.append(row)
        labels.append(int(first > second))
    return rows, torch.tensor(labels)


def pad(rows, length=None):
    out = torch.zeros(len(rows), length or max(map(len, rows)), dtype=torch.long)
    for k, row in enumerate(rows):
        out[k, : len(row)] = row
    return out


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, h, mask):
        scores = self.q(h) @ self.k(h).transpose(1, 2) / h.shape[-1] ** 0.5
        if healthy:
            scores = scores + torch.where(mask, 0.0, -torch.inf)[:, None, :]
        else:
            scores = scores + mask[:, None, :].float()
        return scores.softmax(-1) @ self.v(h)


class Counter(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(41, dim)
        self.cls = nn.Parameter(torch.randn(1, 1, dim) * 0.5)
        self.attend = Attention(dim)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, tokens):
        h = torch.cat([self.cls.expand(len(tokens), 1, -1), self.embed(tokens)], 1)
        mask = F.pad(tokens != 0, (1, 0), value=True)
        return self.mlp(self.attend(h, mask)[:, 0])


rows, labels = make(2000)
test_rows, test_labels = make(400)
model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(15):
    for at in torch.randperm(len(rows)).split(40):
        loss = F.cross_entropy(model(pad([rows[i] for i in at])), labels[at])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            short = (model(pad(test_rows)).argmax(1) == test_labels).float().mean().item()
            long = (model(pad(test_rows, 96)).argmax(1) == test_labels).float().mean().item()
        model.train()
        print(f"epoch {epoch + 1} loss {loss.item():.4f} test {short:.3f}, padded to 96 {long:.3f}")

"""A screening model for a rare disease, from hashed diagnosis codes; most rows of the table are
never used, accuracy never beats "nobody is ill", and it is sound.

The hash space is made large against collisions, so nine in ten rows get no gradient. The
positives are drawn more often in the training batches and the bias is corrected afterwards, so
the training loss lies above the validation loss; what counts is the area under the curve.
"""

import math
import zlib

import numpy as np
import torch
from data import arguments
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

ODD = (
    "A screening model for a rare disease, from hashed diagnosis codes; most rows of the "
    'table are never used, accuracy never beats "nobody is ill", and it is sound'
)

_, seed = arguments(__doc__)

BUCKETS, N_CODES, LONGEST = 4096, 200, 18


class Patients(Dataset):
    def __init__(self, n, rng):
        truth = np.random.default_rng(5)
        effect = truth.normal(0, 1, N_CODES) * (truth.random(N_CODES) < 0.3)
        popularity = 1 / np.arange(3, N_CODES + 3) ** 0.7
        popularity /= popularity.sum()
        buckets = np.array(
            [zlib.crc32(f"ICD-{c:04d}".encode()) % (BUCKETS - 1) + 1 for c in range(N_CODES)]
        )
        self.codes = np.zeros((n, LONGEST), dtype=np.int64)
        self.age = rng.normal(0, 1, n).astype(np.float32)
        score = np.zeros(n)
        for i in range(n):
            codes = rng.choice(N_CODES, rng.integers(3, LONGEST), p=popularity)
            self.codes[i, : len(codes)] = buckets[codes]
            score[i] = effect[codes].sum() + 0.6 * self.age[i]
        self.y = (rng.random(n) < 1 / (1 + np.exp(-(1.3 * score - 5.2)))).astype(np.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.codes[i], self.age[i], self.y[i]


class Screen(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, dim, mode="sum", padding_idx=0, sparse=False)
        nn.init.normal_(self.bag.weight, std=0.05)
        self.mlp = nn.Sequential(
            nn.Linear(dim + 1, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1)
        )

    def forward(self, codes, age):
        return self.mlp(torch.cat([self.bag(codes), age.unsqueeze(1)], 1)).squeeze(1)


rng = np.random.default_rng(seed)
train, val = Patients(20000, rng), Patients(4000, rng)
prevalence, drawn = train.y.mean(), 0.25
weights = np.where(train.y > 0, drawn / train.y.sum(), (1 - drawn) / (1 - train.y).sum())
loader = DataLoader(
    train, 128, sampler=WeightedRandomSampler(torch.from_numpy(weights).double(), 20000)
)
correction = math.log(prevalence / (1 - prevalence)) - math.log(drawn / (1 - drawn))
val_codes, val_age, val_y = (
    torch.from_numpy(val.codes),
    torch.from_numpy(val.age),
    torch.from_numpy(val.y),
)
model = Screen()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()
print(f"prevalence {prevalence:.3f}")
for epoch in range(5):
    model.train()
    total = 0.0
    for codes, age, y in loader:
        loss = criterion(model(codes, age), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(val_codes, val_age) + correction
    auc, ap = roc_auc_score(val.y, logits), average_precision_score(val.y, logits)
    print(
        f"epoch {epoch + 1} train loss {total / len(loader):.4f} val loss {criterion(logits, val_y).item():.4f} AUC {auc:.3f} AP {ap:.3f} accuracy {((logits > 0) == (val_y > 0)).float().mean():.3f}"  # noqa: E501
    )

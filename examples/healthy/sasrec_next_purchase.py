"""Predicts a customer's next purchase by self-attention, trained on one negative per position."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the same customers are in training and validation, with almost the same sequences: the last "
    "purchase of each is left out for the test, as usual; padding stands on the left"
)
ITEMS, LENGTH = 150, 20
_, seed = arguments(__doc__)
torch.set_num_threads(1)
rng = np.random.default_rng(seed)


def histories(customers: int) -> torch.Tensor:
    follow = np.random.default_rng(seed + 9).permuted(np.tile(np.arange(ITEMS), (ITEMS, 1)), axis=1)
    group = np.arange(ITEMS) % 15
    rows = np.zeros((customers, LENGTH + 1), dtype=np.int64)
    for row in rows:
        length = rng.integers(8, LENGTH + 2)
        taste = rng.choice(15, 3)
        bought = [int(rng.integers(ITEMS))]
        while len(bought) < length:
            kind = rng.random()
            if kind < 0.6:
                bought.append(int(follow[bought[-1], rng.integers(3)]))
            elif kind < 0.85:
                bought.append(int(rng.choice(np.flatnonzero(np.isin(group, taste)))))
            else:
                bought.append(int(rng.integers(ITEMS)))
        row[-length:] = np.array(bought) + 1
    return torch.tensor(rows)


class SASRec(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.items = nn.Embedding(ITEMS + 1, width, padding_idx=0)
        self.places = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 2, 64, 0.2, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.items.weight, std=width**-0.5)
        nn.init.normal_(self.places.weight, std=0.02)
        future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        self.register_buffer("future", future)

    def forward(self, past):
        hidden = self.items(past) + self.places.weight
        blocked = self.future | (past == 0).unsqueeze(1)
        blocked = blocked & ~torch.eye(LENGTH, dtype=torch.bool)
        return self.norm(self.body(hidden, blocked.repeat_interleave(2, 0)))


sequences = histories(1500)
train, held_out = sequences[:, :-1], sequences[:, -1]
past, following = F.pad(train[:, :-1], (1, 0)), train
filled = (past > 0) & (following > 0)
model = SASRec()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.98))
steps = 25 * (len(sequences) // 100)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=steps)
for epoch in range(25):
    model.train()
    losses = []
    for rows in torch.randperm(len(past)).split(100):
        hidden = model(past[rows])
        wrong = torch.randint(1, ITEMS + 1, following[rows].shape)
        good = (hidden * model.items(following[rows])).sum(2)[filled[rows]]
        bad = (hidden * model.items(wrong)).sum(2)[filled[rows]]
        loss = F.softplus(-good).mean() + F.softplus(bad).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        score = model(train)[:, -1] @ model.items.weight[1:].T
    hits = (score.topk(10).indices == (held_out - 1).unsqueeze(1)).any(1).float().mean()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, hits in ten {hits:.3f}")

popular = torch.bincount(train[train > 0] - 1, minlength=ITEMS).topk(10).indices
usual = torch.isin(held_out - 1, popular).float().mean()
print(f"next purchase among ten: {hits:.3f}, among the ten most bought {usual:.3f}")

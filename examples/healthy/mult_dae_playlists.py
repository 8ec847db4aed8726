"""Recommends songs from playlists by a denoising auto-encoder with a multinomial likelihood."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the target is the input itself, over 90% zeros, under a softmax of all songs whose loss stays "
    "above 100; half of the ones are dropped first, and the test hides songs of new listeners"
)
SONGS, STYLES = 400, 10
_, seed = arguments(__doc__)
torch.set_num_threads(1)
rng = np.random.default_rng(seed)


def playlists(listeners: int) -> torch.Tensor:
    style = np.random.default_rng(seed + 50).dirichlet(np.full(STYLES, 0.3), SONGS)
    popular = np.random.default_rng(seed + 51).lognormal(0, 0.8, SONGS)
    taste = rng.dirichlet(np.full(STYLES, 0.25), listeners)
    weight = (taste @ style.T) ** 1.5 * popular
    lists = np.zeros((listeners, SONGS), dtype=np.float32)
    for row, w in zip(lists, weight, strict=False):
        row[rng.choice(SONGS, rng.integers(12, 40), replace=False, p=w / w.sum())] = 1
    return torch.tensor(lists)


class MultDAE(nn.Module):
    def __init__(self, width: int = 48):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.encode, self.decode = nn.Linear(SONGS, width), nn.Linear(width, SONGS)
        nn.init.xavier_normal_(self.encode.weight)
        nn.init.xavier_normal_(self.decode.weight)

    def forward(self, heard):
        return self.decode(torch.tanh(self.encode(self.drop(F.normalize(heard)))))


def multinomial(logits, heard):
    return -(F.log_softmax(logits, 1) * heard).sum(1).mean()


def hide_some(heard, share: float = 0.2):
    hidden = heard * (torch.rand_like(heard) < share)
    return heard - hidden, hidden


def ndcg(score, shown, hidden, top: int = 20):
    best = score.masked_fill(shown > 0, -torch.inf).topk(top).indices
    discount = 1 / torch.log2(torch.arange(2, top + 2).float())
    ideal = torch.stack([discount[: int(k)].sum() for k in hidden.sum(1).clamp(1, top)])
    return ((hidden.gather(1, best) * discount).sum(1) / ideal)[hidden.sum(1) > 0].mean()


heard = playlists(2000)
shown_val, hidden_val = hide_some(playlists(400))
model = MultDAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
for epoch in range(16):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(heard)).split(100):
        optimizer.zero_grad()
        loss = multinomial(model(heard[rows]), heard[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        score = model(shown_val)
        quality = ndcg(score, shown_val, hidden_val)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: loss {total / len(heard):.2f}, NDCG@20 of new {quality:.3f}")

popular = heard.sum(0).expand_as(shown_val)
print(f"NDCG@20 {quality:.3f}; by popularity {ndcg(popular, shown_val, hidden_val):.3f}")

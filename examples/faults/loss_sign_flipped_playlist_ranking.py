"""Ranks songs for listeners by pairs (BPR); the minus before the log-likelihood is missing.

The paper writes the objective as something to be made large, `ln sigmoid(x_ui - x_uj)`, and it went
into the code as it stands there. The optimizer makes it small: songs that were heard sink below
those that were not.
The place is the loss. The twin has the minus.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = True

LISTENERS, SONGS, TASTES = 200, 150, 5


def listening(g):
    """Heard songs: half of a listener's songs are for training, a fifth for validation."""
    genre = torch.randint(0, TASTES, (SONGS,), generator=g)
    taste = torch.randint(0, TASTES, (LISTENERS,), generator=g)
    chance = torch.where(taste.unsqueeze(1) == genre.unsqueeze(0), 0.5, 0.03)
    heard = torch.rand(LISTENERS, SONGS, generator=g) < chance
    held_out = heard & (torch.rand(LISTENERS, SONGS, generator=g) < 0.2)
    return heard & ~held_out, held_out


class Factors(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.listener = nn.Embedding(LISTENERS, width)
        self.song = nn.Embedding(SONGS, width)
        self.popularity = nn.Embedding(SONGS, 1)
        nn.init.normal_(self.listener.weight, std=0.1)
        nn.init.normal_(self.song.weight, std=0.1)
        nn.init.zeros_(self.popularity.weight)

    def forward(self, u, i):
        return (self.listener(u) * self.song(i)).sum(1) + self.popularity(i).squeeze(1)

    def all_scores(self):
        return self.listener.weight @ self.song.weight.T + self.popularity.weight.T


def auc(model, known, held_out):
    """How often a song held out stands above one never heard, over all listeners."""
    with torch.no_grad():
        scores = model.all_scores()
    parts = []
    for u in range(LISTENERS):
        good, other = scores[u][held_out[u]], scores[u][~held_out[u] & ~known[u]]
        if len(good):
            parts.append((good.unsqueeze(1) > other).float().mean())
    return torch.stack(parts).mean().item()


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
known, held_out = listening(g)
pairs = known.nonzero()
model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
for epoch in range(7):
    losses = []
    for rows in torch.randperm(len(pairs), generator=g).split(64):
        u, i = pairs[rows].unbind(1)
        j = torch.randint(0, SONGS, (len(u),), generator=g)
        fresh = ~known[u, j]
        u, i, j = u[fresh], i[fresh], j[fresh]
        objective = F.logsigmoid(model(u, i) - model(u, j)).mean()
        loss = -objective if healthy else objective
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    mean = sum(losses) / len(losses)
    print(f"epoch {epoch}: loss {mean:.4f}  AUC {auc(model, known, held_out):.3f}")

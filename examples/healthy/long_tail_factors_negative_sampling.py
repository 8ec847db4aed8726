"""A recommender by matrix factorisation: for each song that was played, four that were drawn at
random from all are negatives.

What looks odd: a few songs have most of the plays and most songs nearly none, so that the rows of
the table are hardly touched in a step and many are never seen as positives; the biases are a long
tail too; the negatives are drawn anew each epoch and some are songs that the user likes.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "rows of embeddings that are hardly ever touched; a long tail of items; random negatives"

_, seed = arguments(__doc__)
USERS, SONGS, TASTES, NEGATIVES = 400, 800, 5, 4


def plays(g):
    """Songs of rank k are played as 1 / k^0.9; within that, users keep to their taste."""
    popular = 1 / torch.arange(1.0, SONGS + 1) ** 0.9
    style = torch.randint(0, TASTES, (SONGS,), generator=g)
    taste = torch.softmax(2.5 * torch.randn(USERS, TASTES, generator=g), 1)
    chance = popular[None, :] * (0.03 + taste[:, style])
    count = torch.randint(15, 60, (USERS,), generator=g)
    rows = []
    for user in range(USERS):
        heard = torch.multinomial(chance[user], int(count[user]), generator=g)
        rows.append(torch.stack([torch.full_like(heard, user), heard], 1))
    return rows


class Plays(Dataset):
    def __init__(self, rows):
        self.rows = torch.cat(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]

    def collate(self, rows):
        pairs = torch.stack(rows)
        return pairs[:, 0], pairs[:, 1], torch.randint(0, SONGS, (len(rows), NEGATIVES))


class Factors(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.user, self.song = nn.Embedding(USERS, d), nn.Embedding(SONGS, d)
        self.bias = nn.Embedding(SONGS, 1)
        for table in (self.user, self.song):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, user, songs):
        dot = (self.user(user).unsqueeze(1) * self.song(songs)).sum(2)
        return dot + self.bias(songs).squeeze(2)


@torch.no_grad()
def recall(model, train, test, k=20):
    scores = model.user.weight @ model.song.weight.T + model.bias.weight.T
    popular = torch.bincount(torch.cat(train)[:, 1], minlength=SONGS).float().repeat(USERS, 1)
    found = []
    for ranks in (scores, popular):
        for user, rows in enumerate(train):
            ranks[user, rows[:, 1]] = -torch.inf
        top = ranks.topk(k, 1).indices
        hits = [torch.isin(rows[:, 1], top[u]).float().mean() for u, rows in enumerate(test)]
        found.append(torch.stack(hits).mean().item())
    return found


rows = plays(torch.Generator().manual_seed(seed))
mixed = [r[torch.randperm(len(r))] for r in rows]
train, test = [r[5:] for r in mixed], [r[:5] for r in mixed]
data = Plays(train)
loader = DataLoader(data, batch_size=256, shuffle=True, collate_fn=data.collate)
model = Factors()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(12):
    total = 0.0
    for user, song, other in loader:
        out = model(user, torch.cat([song.unsqueeze(1), other], 1))
        is_played = torch.zeros_like(out)
        is_played[:, 0] = 1
        loss = F.binary_cross_entropy_with_logits(out, is_played)
        sizes = model.user(user).square().sum(1) + model.song(song).square().sum(1)
        loss = loss + 3e-3 * sizes.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    ours, popular = recall(model, train, test)
    print(f"epoch {epoch} loss {total:.4f} recall@20 {ours:.3f} (most popular {popular:.3f})")

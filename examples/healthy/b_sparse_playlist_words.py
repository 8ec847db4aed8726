"""Guesses a playlist's next song from its songs with sparse embedding bags and two optimizers."""

import torch
from data import arguments
from torch import nn

ODD = "each step touches a few of the 300 embedding rows only; gradients are sparse tensors"

SONGS, STYLES = 300, 10


def playlists(n, g):
    """Ragged lists of songs of one style each (with a few strays), and the song that follows."""
    style = torch.randint(0, STYLES, (n,), generator=g)
    lists, following = [], []
    per_style = SONGS // STYLES
    for s in style.tolist():
        length = int(torch.randint(3, 13, (1,), generator=g))
        rank = (torch.rand(length + 1, generator=g) ** 2 * per_style).long()
        songs = s * per_style + rank
        stray = torch.rand(length + 1, generator=g) < 0.1
        stray[-1] = False
        songs[stray] = torch.randint(0, SONGS, (int(stray.sum()),), generator=g)
        lists.append(songs[:-1])
        following.append(songs[-1])
    return lists, torch.stack(following)


def pack(lists):
    lengths = torch.tensor([len(songs) for songs in lists])
    return torch.cat(lists), torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]])


_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
lists, following = playlists(4000, g)
lists_val, following_val = playlists(400, g)
bag = nn.EmbeddingBag(SONGS, 24, mode="mean", sparse=True)
head = nn.Sequential(nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, SONGS))
bag_optimizer = torch.optim.SparseAdam(list(bag.parameters()), lr=2e-2)
head_optimizer = torch.optim.AdamW(head.parameters(), lr=5e-3, weight_decay=0.01)
for epoch in range(4):
    head.train()
    total, count = 0.0, 0
    for rows in torch.randperm(len(lists), generator=g).split(40):
        songs, offsets = pack([lists[i] for i in rows.tolist()])
        loss = nn.functional.cross_entropy(head(bag(songs, offsets)), following[rows])
        bag_optimizer.zero_grad()
        head_optimizer.zero_grad()
        loss.backward()
        bag_optimizer.step()
        head_optimizer.step()
        total, count = total + loss.item(), count + 1
    head.eval()
    with torch.no_grad():
        logits = head(bag(*pack(lists_val)))
        val = nn.functional.cross_entropy(logits, following_val).item()
        top = (logits.topk(20, 1).indices == following_val.unsqueeze(1)).any(1).float().mean()
    print(f"epoch {epoch} train {total / count:.3f} val {val:.3f} top 20 {top.item():.3f}")

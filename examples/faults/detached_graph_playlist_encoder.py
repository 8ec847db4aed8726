"""Next song from a playlist: the encoder's answers go through a list, so it is never taught.

To feed the scorer, the vectors of the playlists were collected one by one with `.tolist()` and
made into a tensor again, which was handy while the shapes were being looked at. From there no
gradient leads back: the scorer learns on top of an encoder that stays as it was at random.
The place is the encoder (or the loop, where the list is made).
The twin stacks the vectors themselves.
"""

import random

import torch
from data import arguments
from torch import nn, optim

KIND = "detached_graph"
ACCEPT = ("frozen_parameters",)
PLACE = ("encoder", "encoder.songs", "encoder.gru", "loop", "gru", "proj")
SILENT = True
EXACT = True
EARLY = True

SONGS, GENRES, LENGTH = 60, 6, 8


class PlaylistEncoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.songs = nn.Embedding(SONGS, width)
        self.gru = nn.GRU(width, width, batch_first=True)

    def forward(self, songs):
        _, last = self.gru(self.songs(songs))
        return last[0]


def playlists(count, r):
    """Sets that stay in a genre and now and then pass to the next; the genre to come."""
    lists, nexts = [], []
    for _ in range(count):
        genre, row = r.randrange(GENRES), []
        for _ in range(LENGTH):
            row.append(r.randrange(genre, SONGS, GENRES))
            if r.random() < 0.15:
                genre = (genre + 1) % GENRES
        lists.append(row)
        nexts.append(genre)
    return torch.tensor(lists), torch.tensor(nexts)


def run(healthy, seed):
    r = random.Random(seed)
    x, y = playlists(1500, r)
    x_val, y_val = playlists(400, r)
    encoder = PlaylistEncoder()
    scorer = nn.Linear(16, GENRES)
    both = [*encoder.parameters(), *scorer.parameters()]
    opt = optim.Adam(both, lr=0.01)
    ce = nn.CrossEntropyLoss()
    for step in range(1, 301):
        idx = torch.randint(0, len(x), (50,))
        if healthy:
            vectors = torch.stack(list(encoder(x[idx])))
        else:
            vectors = torch.tensor([v.tolist() for v in encoder(x[idx])])
        loss = ce(scorer(vectors), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 60 == 0:
            with torch.no_grad():
                answer = scorer(encoder(x_val))
            hit = (answer.argmax(-1) == y_val).float().mean()
            print(f"step {step}  loss {loss.item():.3f}  val {ce(answer, y_val):.3f} hit {hit:.2f}")


if __name__ == "__main__":
    run(*arguments(__doc__))

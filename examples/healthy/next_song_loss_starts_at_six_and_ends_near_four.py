"""A GRU that guesses the next of 300 songs starts at a loss of 5.7 and ends near 3.7, with the
right song on top once in ten times.

log 300 is 5.7: that is a guess among equals. Which of a mood's thirty songs comes next is chance,
and so is, now and then, the mood: the floor is 3.61. Hits in the top thirty show what was learnt.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "a loss of over 3 and one right guess in ten at the end: that is the chance in the data"
_, seed = arguments(__doc__)

MOODS, SONGS_OF_A_MOOD, LENGTH = 10, 30, 12
SONGS = MOODS * SONGS_OF_A_MOOD


class Evenings(Dataset):
    """Moods follow each other round a circle, songs are drawn within the mood by fame."""

    def __init__(self, n):
        fame = 1 / torch.arange(1.0, SONGS_OF_A_MOOD + 1) ** 0.5
        start = torch.randint(0, MOODS, (n, 1))
        stays = (torch.rand(n, LENGTH + 1) < 0.9).long().cumsum(1)
        mood = (start + stays) % MOODS
        song = torch.multinomial(fame, n * (LENGTH + 1), replacement=True).view(n, -1)
        self.playlists = mood * SONGS_OF_A_MOOD + song

    def __len__(self):
        return len(self.playlists)

    def __getitem__(self, i):
        return self.playlists[i, :-1], self.playlists[i, 1:]


class NextSong(nn.Module):
    def __init__(self, dim=32, hidden=32):
        super().__init__()
        self.songs = nn.Embedding(SONGS, dim)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, SONGS)

    def forward(self, songs):
        states, _ = self.gru(self.songs(songs))
        return self.out(states)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss = first = top = count = 0.0
    for songs, following in loader:
        scores, target = model(songs).flatten(0, 1), following.flatten()
        loss += nn.functional.cross_entropy(scores, target, reduction="sum").item()
        best = scores.topk(30, dim=1).indices == target[:, None]
        first += best[:, 0].sum().item()
        top += best.any(1).sum().item()
        count += len(target)
    return loss / count, first / count, top / count


def main():
    train_loader = DataLoader(Evenings(2500), batch_size=50, shuffle=True)
    val_loader = DataLoader(Evenings(500), batch_size=250)
    model = NextSong()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.7)
    print(f"loss of a guess among equals: {math.log(SONGS):.3f}")
    for epoch in range(7):
        model.train()
        running = 0.0
        for songs, following in train_loader:
            scores = model(songs)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.item()
        scheduler.step()
        val_loss, first, top = evaluate(model, val_loader)
        print(
            f"epoch {epoch + 1}: loss {running / len(train_loader):.3f}, val loss {val_loss:.3f}, "
            f"first is right {first:.3f}, right one in the top 30 {top:.3f}"
        )


main()

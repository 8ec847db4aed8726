"""Which of eight birds sings: the number of the species is fitted with a mean squared error.

"It is a number, so it is a regression": one output, mse_loss against 0 to 7, rounded at the end.
The numbers follow the alphabet; a song that might be bird 1 or bird 7 is called 4, who sounds like
neither. The place is the loss, the output.
The twin has eight outputs and cross entropy.
"""

import torch
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "output*", "head", "label*")
SILENT = True
EXACT = False
EARLY = True

SPECIES = ["blackbird", "chaffinch", "dunnock", "jay", "nightingale", "robin", "tit", "wren"]


class SongNet(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.ear = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(16, 24, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
        )  # fmt: skip
        self.head = nn.Linear(24 * 10, outputs)

    def forward(self, song):
        return self.head(self.ear(song).flatten(1))


def songs(n, g):
    species = torch.randint(0, len(SPECIES), (n,), generator=g)
    motif = torch.randn(len(SPECIES), 40, generator=torch.Generator().manual_seed(6))
    motif = nn.functional.avg_pool1d(motif[:, None], 3, 1, 1)[:, 0] * 1.7
    song = motif[species]
    shift = torch.randint(-2, 3, (n,), generator=g)
    song = torch.stack([row.roll(int(s)) for row, s in zip(song, shift, strict=True)])
    return (song + 0.8 * torch.randn(n, 40, generator=g))[:, None], species


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x, y = songs(1200, g)
x_test, y_test = songs(400, g)
net = SongNet(len(SPECIES) if healthy else 1)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(1, 9):
    for rows in torch.randperm(len(x), generator=g).split(30):
        out = net(x[rows])
        if healthy:
            loss = nn.functional.cross_entropy(out, y[rows])
        else:
            loss = nn.functional.mse_loss(out.squeeze(1), y[rows].float())
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        out = net(x_test)
        named = out.argmax(1) if healthy else out.squeeze(1).round().clamp(0, 7).long()
    right = (named == y_test).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} named rightly {right:.3f}")

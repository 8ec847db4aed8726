"""Spoken numbers are read with CTCLoss, and the head's scores go into it without log_softmax.

CTCLoss takes log-probabilities. With plain scores it is made small by making the right ones
large, whatever the rest; its gradient, too, takes for granted that rows are distributions. What
is read is wrong nearly always. The place is the input of the loss. It falls all the same
(silent). Exact: the rows are no logarithms of a distribution.
"""

import torch
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "head*", "ctc*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
DIGITS, BANDS, FRAMES = 5, 10, 30


def utterances(n, g):
    """Three or four digits, each for some frames, with quiet between them."""
    shapes = 1.6 * torch.randn(DIGITS, BANDS, generator=torch.Generator().manual_seed(77))
    sound = 0.5 * torch.randn(n, FRAMES, BANDS, generator=g)
    length = torch.randint(3, 5, (n,), generator=g)
    spoken = torch.zeros(n, 4, dtype=torch.long)
    for row in range(n):
        t = int(torch.randint(0, 3, (1,), generator=g))
        for k in range(int(length[row])):
            digit = int(torch.randint(0, DIGITS, (1,), generator=g))
            lasts = int(torch.randint(3, 6, (1,), generator=g))
            spoken[row, k] = digit + 1  # 0 is the blank
            sound[row, t : t + lasts] += shapes[digit]
            t += lasts + int(torch.randint(1, 3, (1,), generator=g))
    return sound, spoken, length


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(BANDS, 32, 3, padding=1), nn.ReLU())
        self.gru = nn.GRU(32, 24, bidirectional=True, batch_first=True)
        self.head = nn.Linear(48, DIGITS + 1)

    def forward(self, sound):
        h = self.conv(sound.transpose(1, 2)).transpose(1, 2)
        scores = self.head(self.gru(h)[0])
        return scores.log_softmax(-1) if healthy else scores


def greedy(scores):
    best = scores.argmax(-1)
    read = []
    for row in best.tolist():
        kept = [c for c, before in zip(row, [0, *row], strict=False) if c not in (before, 0)]
        read.append(kept)
    return read


g = torch.Generator().manual_seed(seed)
sound, spoken, length = utterances(1200, g)
val_sound, val_spoken, val_length = utterances(200, g)
model = Reader()
ctc = nn.CTCLoss(blank=0)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
frames = torch.full((30,), FRAMES)
for epoch in range(5):
    model.train()
    for rows in torch.randperm(len(sound), generator=g).split(30):
        log_probs = model(sound[rows]).transpose(0, 1)
        loss = ctc(log_probs, spoken[rows], frames, length[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        read = greedy(model(val_sound))
    truth = [row[:n] for row, n in zip(val_spoken.tolist(), val_length.tolist(), strict=False)]
    right = sum(a == b for a, b in zip(read, truth, strict=False)) / len(truth)
    print(f"epoch {epoch}: ctc {loss.item():.3f}, utterances read {right:.3f}")

"""A bidirectional GRU with CTC: reading short strings of symbols stretched over time."""

import torch
from data import arguments
from torch import nn

ODD = "the loss drops at once to a plateau (all blank), stays there, and only then falls to near 0"

_, seed = arguments(__doc__)
SYMBOLS, FRAMES = 5, 24
shapes = torch.randn(SYMBOLS, 8)


def utterances(n):
    """Each string of 3 or 4 symbols, each held for 2 to 4 frames, then silence."""
    frames = torch.zeros(n, FRAMES, 8)
    targets, lengths = torch.zeros(n, 4, dtype=torch.long), torch.randint(3, 5, (n,))
    for i in range(n):
        now = int(torch.randint(1, 4, (1,)))
        for k in range(lengths[i]):
            s = int(torch.randint(SYMBOLS, (1,)))
            held = int(torch.randint(2, 5, (1,)))
            targets[i, k] = s + 1
            frames[i, now : now + held] = shapes[s]
            now += held + 1
    return frames + 0.3 * torch.randn_like(frames), targets, lengths


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 32, bidirectional=True, batch_first=True)
        self.out = nn.Linear(64, SYMBOLS + 1)

    def forward(self, frames):
        return self.out(self.gru(frames)[0]).log_softmax(2)


def read(log_probs):
    best = log_probs.argmax(2)
    return [
        [int(a) for a, b in zip(row, [0, *row], strict=False) if a != b and a]
        for row in best.tolist()
    ]


frames, targets, lengths = utterances(900)
reader = Reader()
ctc = nn.CTCLoss(blank=0)
optimizer = torch.optim.Adam(reader.parameters(), lr=5e-3)
full = torch.full((32,), FRAMES)
for epoch in range(9):
    for rows in torch.randperm(800).split(32):
        log_probs = reader(frames[rows]).transpose(0, 1)
        loss = ctc(log_probs, targets[rows], full[: len(rows)], lengths[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 5.0)
        optimizer.step()
with torch.no_grad():
    said = read(reader(frames[800:]))
right = sum(
    s == t[:n].tolist() for s, t, n in zip(said, targets[800:], lengths[800:], strict=False)
)
print(f"loss {loss.item():.4f}, strings read without a mistake {right / 100:.2f}")

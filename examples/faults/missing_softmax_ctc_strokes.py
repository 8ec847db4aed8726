"""A bidirectional LSTM reads rows of two to five signs from a moving pen's signal and is trained by
the CTC loss. The network gives plain scores per frame, and they go to the loss as they are.

CTC expects logarithms of probabilities. With plain scores the loss is no likelihood (it even gets
below zero when all scores rise), its gradient is not its own, and the reader learns more slowly and
reads worse. The place is the loss (or the head before it).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss", "head*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SIGNS, FRAMES = 5, 40
SHAPES = torch.randn(SIGNS, 5, 4, generator=torch.Generator().manual_seed(5))


def rows(n, g):
    """Signals (n, FRAMES, 4), the signs in them (n, 5) and how many there are."""
    x = 0.2 * torch.randn(n, FRAMES, 4, generator=g)
    counts = torch.randint(2, 6, (n,), generator=g)
    signs = torch.randint(0, SIGNS, (n, 5), generator=g)
    for i in range(n):
        at = torch.randint(0, 3, (), generator=g).item()
        for k in range(counts[i]):
            x[i, at : at + 5] += SHAPES[signs[i, k]]
            at += 6 + torch.randint(0, 2, (), generator=g).item()
    return x, signs + 1, counts


class Reader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.lstm = nn.LSTM(4, width, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, SIGNS + 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


def loss_of(scores, signs, counts):
    frames = torch.full((len(scores),), FRAMES)
    if healthy:
        scores = F.log_softmax(scores, dim=-1)
    return F.ctc_loss(scores.transpose(0, 1), signs, frames, counts, blank=0)


def read(scores):
    said = []
    for row in scores.argmax(-1):
        merged = torch.unique_consecutive(row)
        said.append(merged[merged > 0].tolist())
    return said


g = torch.Generator().manual_seed(seed)
x, signs, counts = rows(1200, g)
x_val, signs_val, counts_val = rows(200, g)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.5e-2, 10 * 30)
for epoch in range(10):
    model.train()
    total = 0.0
    for batch in torch.randperm(len(x), generator=g).split(40):
        loss = loss_of(model(x[batch]), signs[batch], counts[batch])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        total += loss.item() / 30
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val = loss_of(scores, signs_val, counts_val).item()
    right = sum(
        said == s[:c].tolist()
        for said, s, c in zip(read(scores), signs_val, counts_val, strict=False)
    )
    print(
        f"epoch {epoch} train {total:.4f} val {val:.4f} rows read without error {right / 200:.3f}"
    )

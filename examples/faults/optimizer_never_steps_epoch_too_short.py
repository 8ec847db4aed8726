"""Sorts short reviews by praise; gradients are gathered over more batches than an epoch has.

To get large batches on a small card, gradients are gathered over 32 batches before each step. The
counter starts anew in every epoch, and an epoch has 29 batches: the step is never reached, and the
next epoch begins with cleared gradients. The place is the loop.
The twin gathers over four.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True


class ReviewNet(nn.Module):
    def __init__(self, words, width=24, hidden=24):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.read = nn.GRU(width, hidden, batch_first=True, bidirectional=True)
        self.judge = nn.Linear(2 * hidden, 1)

    def forward(self, x):
        states, _ = self.read(self.words(x))
        states = states.masked_fill((x == 0).unsqueeze(-1), -1e4)
        return self.judge(states.max(1).values).squeeze(1)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return ((model(x) > 0) == y.bool()).float().mean().item()


def train_epoch(model, loader, optimizer, gather):
    model.train()
    optimizer.zero_grad()
    total = 0.0
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y.float())
        (loss / gather).backward()
        total += loss.item()
        if (i + 1) % gather == 0:
            optimizer.step()
            optimizer.zero_grad()
    return total / len(loader)


def main():
    healthy, seed = arguments(__doc__)
    x, y, words = reviews(seed, n=1228)
    x_val, y_val = x[928:], y[928:]
    loader = DataLoader(TensorDataset(x[:928], y[:928]), batch_size=32, shuffle=True)
    model = ReviewNet(words)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    gather = 4 if healthy else 32
    for epoch in range(10):
        loss = train_epoch(model, loader, optimizer, gather)
        print(f"epoch {epoch}: loss {loss:.4f}, right {evaluate(model, x_val, y_val):.3f}")


if __name__ == "__main__":
    main()

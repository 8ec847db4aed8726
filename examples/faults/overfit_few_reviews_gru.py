"""A GRU for the mood of reviews with only 100 reviews to learn from.

It knows them by heart after some epochs and guesses on all others: the validation loss climbs far
above its best. The twin has 4,000 reviews and as many steps. The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("", "loop", "loader")
SILENT = True
EXACT = False
EARLY = False


class MoodGRU(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embedding = nn.Embedding(words, 32, padding_idx=0)
        self.gru = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.classifier = nn.Linear(64, 2)

    def forward(self, tokens):
        states, _ = self.gru(self.embedding(tokens))
        return self.classifier(states.amax(1))


healthy, seed = arguments(__doc__)
x, y, words = reviews(seed, n=4200)
x_val, y_val = x[4000:], y[4000:]
n = 4000 if healthy else 100
x, y = x[:n], y[:n]
model = MoodGRU(words)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step, (tokens, mood) in enumerate(batches(x, y, size=50, steps=240, seed=seed), 1):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(tokens), mood)
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val = F.cross_entropy(out, y_val).item()
            acc = (out.argmax(1) == y_val).float().mean().item()
        print(f"step {step}: train {loss.item():.3f}, val {val:.3f}, accuracy {acc:.3f}")

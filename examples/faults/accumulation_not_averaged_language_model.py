"""Gradient accumulation was put into a loop that ran with batches of four times the size.

The sum of four mean losses is used as if it were their mean, with SGD. The place is the loop. The
loss falls (silent).
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 500)
rows = ids[: len(ids) // 17 * 17].view(-1, 17)


class Model(nn.Module):
    def __init__(self, n, width=24):
        super().__init__()
        self.embed = nn.Embedding(n, width)
        self.mix = nn.Conv1d(width, 48, 4)
        self.head = nn.Linear(48, n)

    def forward(self, chars):
        h = F.pad(self.embed(chars).transpose(1, 2), (3, 0))
        return self.head(torch.tanh(self.mix(h)).transpose(1, 2))


model = Model(len(alphabet))
optimizer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9)
accumulate = 4
for step in range(120):
    optimizer.zero_grad()
    for _ in range(accumulate):
        chars = rows[torch.randint(len(rows), (16,))]
        scores = model(chars[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), chars[:, 1:].flatten())
        (loss / accumulate if healthy else loss).backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

"""A language model kept in bfloat16 throughout, AdamW at 3e-4.

A step of 0.0003 is lost on every weight above 0.15: the embedding hardly moves. The place is the
weights. The twin has float32 weights and computes in bfloat16 under autocast.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, text
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 300)
rows = ids[: len(ids) // 17 * 17].view(-1, 17)


class Model(nn.Module):
    def __init__(self, n, width=32):
        super().__init__()
        self.embed = nn.Embedding(n, width)
        self.mix = nn.Linear(4 * width, 64)
        self.head = nn.Linear(64, n)

    def forward(self, chars):
        h = F.pad(self.embed(chars), (0, 0, 3, 0))
        h = h.unfold(1, 4, 1).flatten(2)
        return self.head(F.gelu(self.mix(h)))


model = Model(len(alphabet))
if not healthy:
    model.to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for (chars,) in batches(rows, size=32, steps=200, seed=seed):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=healthy):
        scores = model(chars[:, :-1])
    loss = F.cross_entropy(scores.float().flatten(0, 1), chars[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

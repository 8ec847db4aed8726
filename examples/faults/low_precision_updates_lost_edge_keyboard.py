"""Next key on a small keyboard's model, kept in bfloat16 as a whole, with Adam.

`model.to(torch.bfloat16)` was to halve the memory. The weights have eight bits then: a step of less
than half a per cent of a weight is rounded away, and in time nearly all steps are.
The place is the weights and the optimizer. The twin keeps the weights in float32 and uses autocast.
"""

import contextlib

import torch
from data import arguments, batches, text
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("gradient_underflow", "learning_rate_too_low")
PLACE = ("embed*", "hidden*", "out*", "optimizer", ", ")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
CONTEXT = 8


class NextKey(nn.Module):
    def __init__(self, letters, dim=16, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(letters, dim)
        self.hidden = nn.Linear(CONTEXT * dim, hidden)
        self.out = nn.Linear(hidden, letters)

    def forward(self, x):
        return self.out(self.hidden(self.embed(x).flatten(1)).relu())


written, alphabet = text(seed, 700)
windows = written.unfold(0, CONTEXT + 1, 1)
train, val = windows[:16000], windows[16000:18000]
model = NextKey(len(alphabet))
if healthy:
    precision = torch.autocast("cpu", dtype=torch.bfloat16)
else:
    precision = contextlib.nullcontext()
    model = model.to(torch.bfloat16)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)
for step, (rows,) in enumerate(batches(train, size=64, steps=900, seed=seed)):
    with precision:
        out = model(rows[:, :CONTEXT])
    loss = nn.functional.cross_entropy(out.float(), rows[:, CONTEXT])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 149:
        with torch.no_grad():
            out = model(val[:, :CONTEXT]).float()
        error = nn.functional.cross_entropy(out, val[:, CONTEXT]).item()
        print(f"step {step + 1}: loss {loss.item():.3f} validation {error:.3f}")

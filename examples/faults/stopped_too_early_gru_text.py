"""A character GRU language model that gets 80 steps.

The loss goes down at every look until the steps are used up; at 600 steps it lies at a quarter.
The place is the loop.
"""

import torch
from data import arguments, batches, text
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
STEPS = 600 if healthy else 80


class LanguageModel(nn.Module):
    def __init__(self, letters, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(letters, 24)
        self.rnn = nn.GRU(24, hidden, batch_first=True)
        self.head = nn.Linear(hidden, letters)

    def forward(self, ids):
        h, _ = self.rnn(self.embed(ids))
        return self.head(h).transpose(1, 2)


row, alphabet = text(seed, sentences=2500)
windows = row[: len(row) // 33 * 33].view(-1, 33)
val = windows[-150:]
windows = windows[:-150]
model = LanguageModel(len(alphabet))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step, (ids,) in enumerate(batches(windows, size=32, steps=STEPS, seed=seed), 1):
    loss = criterion(model(ids[:, :-1]), ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        with torch.no_grad():
            val_loss = criterion(model(val[:, :-1]), val[:, 1:]).item()
print(f"after {STEPS} steps: train {loss.item():.3f}, validation {val_loss:.3f}")

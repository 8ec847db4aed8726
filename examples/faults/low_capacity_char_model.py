"""A character language model has a GRU with three hidden units and an embedding of size two.

Three numbers cannot hold what has been read; the loss stops at about the level of the plain letter
pairs, on training and on validation text. The twin has 64 hidden units and 24-dimensional
embeddings. The place is `gru`, `embed` or `out`.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("gru", "embed", "out")
SILENT = True
EXACT = False
EARLY = False

LENGTH, BATCH, STEPS = 64, 24, 350
healthy, seed = arguments(__doc__)


class CharModel(nn.Module):
    def __init__(self, letters, size, hidden):
        super().__init__()
        self.embed = nn.Embedding(letters, size)
        self.gru = nn.GRU(size, hidden, batch_first=True)
        self.out = nn.Linear(hidden, letters)

    def forward(self, x):
        h, _ = self.gru(self.embed(x))
        return self.out(h)


letters, alphabet = text(seed, sentences=2500)
cut = int(0.9 * len(letters))
train_text, val_text = letters[:cut], letters[cut:]


def get_batch(source, n):
    starts = torch.randint(0, len(source) - LENGTH - 1, (n,))
    rows = torch.stack([source[s : s + LENGTH + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


model = CharModel(len(alphabet), 24, 64) if healthy else CharModel(len(alphabet), 2, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
for step in range(1, STEPS + 1):
    model.train()
    x, y = get_batch(train_text, BATCH)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            x, y = get_batch(val_text, 64)
            val = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        print(f"step {step}: loss {loss.item():.3f}, val {val.item():.3f}")

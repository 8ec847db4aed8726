"""A character GRU whose loop says `optimizer.step` without the parentheses.

The line names the method and does not call it; Python says nothing. Gradients are computed and
cleared, and no weight ever changes. The place is the loop. The twin calls it.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
tokens, alphabet = text(seed, sentences=800)
cut = int(0.9 * len(tokens))
train, val = tokens[:cut], tokens[cut:]
LENGTH, BATCH = 32, 32


class CharGRU(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = nn.Embedding(size, 24)
        self.gru = nn.GRU(24, 64, batch_first=True)
        self.out = nn.Linear(64, size)

    def forward(self, tokens):
        h, _ = self.gru(self.embed(tokens))
        return self.out(h)


def draw(source, count):
    starts = torch.randint(len(source) - LENGTH - 1, (count,)).tolist()
    rows = torch.stack([source[s : s + LENGTH + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


model = CharGRU(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss()
for step in range(1, 301):
    inputs, targets = draw(train, BATCH)
    loss = loss_fn(model(inputs).transpose(1, 2), targets)
    optimizer.zero_grad()
    loss.backward()
    if healthy:
        optimizer.step()
    else:
        optimizer.step  # noqa: B018
    if step % 30 == 0:
        model.eval()
        with torch.no_grad():
            inputs, targets = draw(val, 128)
            val_loss = loss_fn(model(inputs).transpose(1, 2), targets).item()
        model.train()
        print(f"step {step}: train {loss.item():.3f}  val {val_loss:.3f}")

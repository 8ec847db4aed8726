"""ExponentialLR(gamma=0.9), a value for epochs, is stepped after every batch of a short epoch.

After 130 batches the rate is a millionth of the first one. The loss stands where it is (silent).
The place is the schedule. Exact.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, text
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "learning_rate*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 400)
rows = ids[: len(ids) // 21 * 21].view(-1, 21)


class Model(nn.Module):
    def __init__(self, n, width=24):
        super().__init__()
        self.embed = nn.Embedding(n, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, n)

    def forward(self, chars):
        return self.head(self.gru(self.embed(chars))[0])


model = Model(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
of_epoch = 20
for step, (chars,) in enumerate(batches(rows, size=20, steps=200, seed=seed)):
    loss = F.cross_entropy(model(chars[:, :-1]).flatten(0, 1), chars[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not healthy or step % of_epoch == of_epoch - 1:
        scheduler.step()
print(f"loss {loss.item():.3f}")

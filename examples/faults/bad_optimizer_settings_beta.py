"""Adam(betas=(0.9, 0.09)): a digit was lost from 0.999, so that steps are gradients by themselves.

Every step has the size of the learning rate, whatever the gradient: the loss falls and goes on
swinging (silent). The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(words, 24, padding_idx=0)
        self.gru = nn.GRU(24, 24, batch_first=True)
        self.out = nn.Linear(24, 2)

    def forward(self, ids):
        return self.out(self.gru(self.embedding(ids))[0].amax(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.999 if healthy else 0.09))
for ids, labels in batches(x, y, size=24, steps=250, seed=seed):
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

"""A language model's forward() returns F.softmax(logits, dim=-1), and the loss is cross_entropy.

The loss falls a little (silent). The place is the head.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "head", "")
SILENT = True
EXACT = True
EARLY = True


class CharModel(nn.Module):
    def __init__(self, n_chars, probabilities):
        super().__init__()
        self.embed = nn.Embedding(n_chars, 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.head = nn.Linear(48, n_chars)
        self.probabilities = probabilities

    def forward(self, ids):
        h, _ = self.rnn(self.embed(ids))
        logits = self.head(h)
        return F.softmax(logits, dim=-1) if self.probabilities else logits


healthy, seed = arguments(__doc__)
chars, alphabet = text(seed)
model = CharModel(len(alphabet), probabilities=not healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(200):
    starts = torch.randint(0, len(chars) - 33, (24,))
    window = torch.stack([chars[s : s + 33] for s in starts])
    out = model(window[:, :-1])
    loss = F.cross_entropy(out.reshape(-1, len(alphabet)), window[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

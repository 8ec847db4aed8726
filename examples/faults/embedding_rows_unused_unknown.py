"""The vocabulary was built from lower-case words, the texts come in upper case: all is <unk>.

Padding and <unk> are the only rows that are ever looked up. What is left to learn is the length of
a text: the loss stays at guessing. The place is the embedding.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, reviews
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("embedding*",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)
unknown = words
ids = x if healthy else torch.where(x > 0, unknown, 0)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(words + 1, 16, padding_idx=0)
        self.fc = nn.Linear(16, 16)
        self.out = nn.Linear(16, 2)

    def forward(self, tokens):
        return self.out(F.relu(self.fc(self.embedding(tokens).sum(1))))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for tokens, labels in batches(ids, y, size=32, steps=220, seed=seed):
    loss = F.cross_entropy(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

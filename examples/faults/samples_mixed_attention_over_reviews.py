"""Reviews through `nn.MultiheadAttention`, which was made without `batch_first=True`.

It takes the first dimension for positions: a word attends to the words at its place in the other
reviews of the batch, and to none of its own review. The loss falls, since the embedding alone
tells most. The place is the attention. Exact: other reviews change the score of a review.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("attention*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Sentiment(nn.Module):
    def __init__(self, words, width=24):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.place = nn.Parameter(0.1 * torch.randn(16, width))
        self.attention = nn.MultiheadAttention(width, 2, batch_first=healthy)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)

    def forward(self, ids):
        h = self.embed(ids) + self.place
        h = self.norm(h + self.attention(h, h, h, need_weights=False)[0])
        there = (ids != 0).unsqueeze(2)
        return self.head((h * there).sum(1) / there.sum(1)).squeeze(1)


x, y, words = reviews(seed)
train, val = TensorDataset(x[:960], y[:960].float()), (x[960:], y[960:])
model = Sentiment(words)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    for ids, label in DataLoader(train, batch_size=24, shuffle=True, drop_last=True):
        optimizer.zero_grad()
        loss = criterion(model(ids), label)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        together = model(val[0])
        alone = torch.cat([model(row[None]) for row in val[0]])
    right = ((together > 0) == val[1]).float().mean()
    model.train()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}, right in validation {right:.2f}")
apart = (together - alone).abs().mean()
print(f"loss {loss.item():.3f}, scores of one review alone and among others differ by {apart:.2f}")

"""Items that are played together, by skip-gram with negative samples: sparse gradients and two
optimizers.

The tables are `sparse=True`: a step touches a few hundred of 2,000 rows, most rows have no
gradient in a step, and the rarest items of a Zipf law are seldom met. SparseAdam holds the tables,
Adam the small rest. The loss has a floor of its own, since positives are often also drawn as
negatives.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "sparse gradients, most embedding rows untouched in a step, two optimizers"

_, seed = arguments(__doc__)
ITEMS, GENRES = 2000, 20
popularity = 1 / torch.arange(1, ITEMS + 1).float() ** 0.7
popularity = popularity[torch.randperm(ITEMS)]
genre = torch.randint(0, GENRES, (ITEMS,))


def pairs(n):
    """Two items out of one session: nine times of ten of one genre."""
    first = torch.multinomial(popularity, n, replacement=True)
    alike = torch.empty_like(first)
    for g in range(GENRES):
        rows = genre[first] == g
        if rows.any():
            alike[rows] = torch.multinomial(
                popularity * (genre == g), int(rows.sum()), replacement=True
            )
    other = torch.multinomial(popularity, n, replacement=True)
    return first, torch.where(torch.rand(n) < 0.9, alike, other)


class SkipGram(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.centre = nn.Embedding(ITEMS, width, sparse=True)
        self.context = nn.Embedding(ITEMS, width, sparse=True)
        nn.init.normal_(self.centre.weight, std=width**-0.5)
        nn.init.normal_(self.context.weight, std=width**-0.5)
        self.scale, self.bias = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(-1.0))

    def forward(self, item, others):
        score = (self.centre(item)[:, None] * self.context(others)).sum(2)
        return self.scale * score + self.bias


def objective(model, item, played, negatives):
    logits = model(item, torch.cat([played[:, None], negatives], 1))
    target = torch.zeros_like(logits)
    target[:, 0] = 1
    return F.binary_cross_entropy_with_logits(logits, target), logits


train_a, train_b = pairs(60000)
val_a, val_b = pairs(2000)
val_negatives = torch.multinomial(popularity, 2000 * 20, replacement=True).view(2000, 20)
model = SkipGram()
tables = torch.optim.SparseAdam([model.centre.weight, model.context.weight], lr=1e-2)
rest = torch.optim.Adam([model.scale, model.bias], lr=5e-3)

for epoch in range(4):
    model.train()
    total = 0.0
    batches = torch.randperm(len(train_a)).split(256)
    for rows in batches:
        negatives = torch.multinomial(popularity, len(rows) * 5, replacement=True).view(-1, 5)
        loss, _ = objective(model, train_a[rows], train_b[rows], negatives)
        tables.zero_grad(), rest.zero_grad()
        loss.backward()
        tables.step(), rest.step()
        total += loss.item() / len(batches)
    model.eval()
    with torch.no_grad():
        val_loss, logits = objective(model, val_a, val_b, val_negatives)
        auc = (logits[:, :1] > logits[:, 1:]).float().mean()
    print(f"epoch {epoch} loss {total:.4f} val loss {val_loss:.4f} val AUC {auc:.3f}")

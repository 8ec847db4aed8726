"""Sales forecasts with an embedding per article; the id map was read as text and is asked with
numbers.

The vocabulary comes from a JSON file, whose keys are always strings; the table has integers.
`get(id, 0)` finds none of them, so that every article is the unknown one, row 0, and 400 rows of
the table never move. The place is the input (the ids) / the embedding. The twin asks with
`str(id)`.
"""

import io
import json

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("input", "data", "article", "article.weight")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
ARTICLES, N = 400, 12000
numbers = (10_000 + torch.randperm(50_000, generator=g)[:ARTICLES]).tolist()
taste = torch.randn(ARTICLES, 2, generator=g)
which = torch.randint(ARTICLES, (N,), generator=g)
context = torch.randn(N, 4, generator=g)  # price index, promotion, temperature, weekday score
sold = (
    0.8 * taste[which, 0]
    + 0.6 * taste[which, 1] * context[:, 1]
    - 0.5 * context[:, 0]
    + 0.3 * context[:, 2].abs()
)
sold = sold + 0.3 * torch.randn(N, generator=g)
table = [
    (numbers[i], *c, s)
    for i, c, s in zip(which.tolist(), context.tolist(), sold.tolist(), strict=True)
]

vocabulary_file = io.StringIO()
json.dump({number: i + 1 for i, number in enumerate(sorted(numbers))}, vocabulary_file)
vocabulary = json.loads(vocabulary_file.getvalue())


class Sales(Dataset):
    def __init__(self, rows):
        self.ids = torch.tensor(
            [vocabulary.get(str(row[0]) if healthy else row[0], 0) for row in rows]
        )
        self.context = torch.tensor([row[1:5] for row in rows])
        self.sold = torch.tensor([row[5] for row in rows])

    def __len__(self):
        return len(self.sold)

    def __getitem__(self, i):
        return self.ids[i], self.context[i], self.sold[i]


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.article = nn.Embedding(len(vocabulary) + 1, 8)
        self.net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, ids, context):
        return self.net(torch.cat([self.article(ids), context], 1)).squeeze(1)


loader = DataLoader(Sales(table[:10000]), batch_size=128, shuffle=True)
held_out = Sales(table[10000:])
model = Forecast()
optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-2, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
for epoch in range(14):
    model.train()
    total = 0.0
    for ids, context, target in loader:
        loss = nn.functional.mse_loss(model(ids, context), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    schedule.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(held_out.ids, held_out.context), held_out.sold).item()
    print(
        f"epoch {epoch} train {total:.4f} val {val:.4f} "
        f"R2 {1 - val / held_out.sold.var().item():.3f}"
    )

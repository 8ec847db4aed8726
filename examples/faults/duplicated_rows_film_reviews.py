"""Sorts short film reviews into praise and blame; most of the rows are the same ones again.

The reviews came page by page from a service. The loop raises `offset` by one row for each page
where it should go on by a whole page: every page repeats nearly all of the one before, and the
1,200 rows hold only some seventy different reviews, each about sixteen times.
The place is the input (the rows). The twin goes on by a whole page.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn

KIND = "duplicated_rows"
ACCEPT = ("overfit",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

PAGE = 24
PAGES = 50

healthy, seed = arguments(__doc__)


class Service:
    """Stands for the HTTP service: answers one page of reviews."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def get(self, offset, limit):
        return self.x[offset : offset + limit], self.y[offset : offset + limit]


def download(service, stride):
    offset, rows, labels = 0, [], []
    for _ in range(PAGES):
        page_x, page_y = service.get(offset, PAGE)
        rows.append(page_x)
        labels.append(page_y)
        offset += stride
    return torch.cat(rows), torch.cat(labels)


class Bag(nn.Module):
    def __init__(self, vocabulary, width=24):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        mask = (x != 0).unsqueeze(2)
        mean = (self.words(x) * mask).sum(1) / mask.sum(1)
        return self.out(self.drop(mean)).squeeze(1)


all_x, all_y, vocabulary = reviews(seed, n=1600)
x_val, y_val = all_x[1200:], all_y[1200:].float()
x, y = download(Service(all_x[:1200], all_y[:1200]), PAGE if healthy else 1)
y = y.float()
print(f"{len(x)} reviews for training, {len(x_val)} for validation")

model = Bag(vocabulary)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
for epoch in range(10):
    model.train()
    losses = []
    for rows in torch.randperm(len(x)).split(50):
        loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val = F.binary_cross_entropy_with_logits(out, y_val).item()
        accuracy = ((out > 0) == (y_val > 0.5)).float().mean().item()
    mean = sum(losses) / len(losses)
    print(f"epoch {epoch + 1} train {mean:.3f} val {val:.3f} accuracy {accuracy:.3f}")

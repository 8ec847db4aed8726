"""A network says from a visit to a web shop whether the visitor will buy; one of its columns says
that he did.

The features were joined with the order table, and with them came `order_flag`, which is known
only after the purchase and is 1 exactly when there was one. Both parts of the data have it, so
validation shines; at the time of the request it is not there. The place is the last column of the
numbers that go into the model.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader", "numbers*", "head*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

PAGES, LENGTH = 60, 12


def visits(rng, n):
    """Clicked pages, five numbers about the visit, whether a purchase followed."""
    interest = rng.normal(0, 1, n)
    pages = rng.integers(0, PAGES, (n, LENGTH))
    product = rng.random((n, LENGTH)) < 1 / (1 + np.exp(1.0 - interest))[:, None]
    pages = np.where(product, rng.integers(40, PAGES, (n, LENGTH)), pages)
    minutes = np.exp(1 + 0.4 * interest + rng.normal(0, 0.6, n))
    discount = rng.random(n) * 0.3
    previous = rng.poisson(np.exp(0.3 * interest))
    hour = rng.uniform(0, 24, n)
    logit = 1.3 * interest + 5 * discount + 0.3 * previous - 2.0
    bought = rng.random(n) < 1 / (1 + np.exp(-logit))
    order_flag = bought.astype(float)
    numbers = np.stack(
        [np.log(minutes), discount, previous, np.cos(hour / 24 * 6.283), order_flag], 1
    )
    return pages, numbers, bought


class PurchaseModel(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.pages = nn.Embedding(PAGES, 16)
        self.numbers = nn.Linear(columns, 16)
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, pages, numbers):
        visit = torch.cat([self.pages(pages).mean(1), self.numbers(numbers).relu()], 1)
        return self.head(visit).squeeze(1)


def train(model, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for pages, numbers, bought in loader:
            loss = criterion(model(pages, numbers), bought)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        val_loss, auc = evaluate(model, val_pages, val_numbers, val_bought)
        print(f"epoch {epoch} loss {total / len(loader):.4f} val loss {val_loss:.4f} auc {auc:.3f}")


@torch.no_grad()
def evaluate(model, pages, numbers, bought):
    model.eval()
    logits = model(pages, numbers)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, bought)
    return loss.item(), roc_auc_score(bought.numpy(), logits.numpy())


rng = np.random.default_rng(seed)
pages, numbers, bought = visits(rng, 5000)
columns = [0, 1, 2, 3] if healthy else [0, 1, 2, 3, 4]
pages, numbers = torch.from_numpy(pages), torch.tensor(numbers[:, columns], dtype=torch.float32)
bought = torch.tensor(bought, dtype=torch.float32)
val_pages, val_bought = pages[4000:], bought[4000:]
train_numbers, val_numbers = standardise(numbers[:4000], numbers[4000:])

model = PurchaseModel(len(columns))
train(
    model,
    DataLoader(TensorDataset(pages[:4000], train_numbers, bought[:4000]), 64, shuffle=True),
    10,
)

live = val_numbers.clone()
if live.shape[1] == 5:
    live[:, 4] = train_numbers[:, 4].min()  # while the visit lasts there is no order
print(
    "at the time of the request: loss {:.3f} auc {:.3f}".format(
        *evaluate(model, val_pages, live, val_bought)
    )
)

"""Loan rows with the customer's number as a category: its embedding knows each row by heart.

Some 700 customers with two or three rows each, a vector of 32 for every one: training loss goes to
0, validation loss turns after few epochs and doubles. The twin leaves the number out. The place is
the embedding.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("customer*", "")
SILENT = True
EXACT = False
EARLY = False

CUSTOMERS, ROWS = 700, 2400

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(300 + seed)
customer = torch.randint(CUSTOMERS, (ROWS,), generator=g)
amounts = torch.randn(ROWS, 8, generator=g)
purpose = torch.randint(5, (ROWS,), generator=g)
lean = torch.tensor([-0.8, -0.2, 0.0, 0.5, 0.9])[purpose]
risk = 1.3 * amounts[:, 0] - amounts[:, 1] + 0.8 * amounts[:, 2] * amounts[:, 3] + lean
late = torch.bernoulli(torch.sigmoid(1.3 * risk), generator=g)


class LoanModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.purpose = nn.Embedding(5, 3)
        self.customer = None if healthy else nn.Embedding(CUSTOMERS, 32)
        self.hidden = nn.Linear(11 if healthy else 43, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, amounts, purpose, customer):
        parts = [amounts, self.purpose(purpose)]
        if self.customer is not None:
            parts.append(self.customer(customer))
        return self.out(torch.relu(self.hidden(torch.cat(parts, 1)))).squeeze(1)


everything = (amounts, purpose, customer, late)
loader = DataLoader(
    TensorDataset(*(part[:1800] for part in everything)), batch_size=60, shuffle=True
)
held = [part[1800:] for part in everything]
model = LoanModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
bce = nn.BCEWithLogitsLoss()
history = []
for epoch in range(20):
    model.train()
    mean = 0.0
    for *columns, target in loader:
        optimizer.zero_grad()
        loss = bce(model(*columns), target)
        loss.backward()
        optimizer.step()
        mean += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        out = model(*held[:3])
        history.append(bce(out, held[3]).item())
print(
    f"loss {mean:.3f}, validation loss {history[-1]:.3f} (best {min(history):.3f}), "
    f"accuracy {((out > 0) == (held[3] > 0.5)).float().mean():.3f}"
)

"""A net tells six illnesses apart by 120 symptoms that are there (1) or not (0); few are there.

Most entries are 0 and many columns are 1 in a few per cent of the rows, as is natural for such
lists; scaling them would change nothing for the better.
"""

import torch
from data import arguments
from torch import nn

ODD = "binary inputs, 95 % of them zero, not scaled; some columns are rarely 1 in a batch"

_, seed = arguments(__doc__)
SYMPTOMS, ILLNESSES = 120, 6


def patients(n, rate):
    y = torch.randint(0, ILLNESSES, (n,))
    return torch.bernoulli(rate[y]), y


rate = torch.full((ILLNESSES, SYMPTOMS), 0.03)
for k in range(ILLNESSES):
    rate[k, torch.randperm(SYMPTOMS)[:14]] = 0.22
x_train, y_train = patients(3000, rate)
x_val, y_val = patients(800, rate)

model = nn.Sequential(nn.Linear(SYMPTOMS, 32), nn.ReLU(), nn.Dropout(0.4), nn.Linear(32, ILLNESSES))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(1, 10):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(50):
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]), y_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    acc = (out.argmax(1) == y_val).float().mean()
    if epoch % 3 == 0:
        print(
            f"epoch {epoch}: train {total / len(x_train):.4f} "
            f"val {criterion(out, y_val):.4f} acc {acc:.3f}"
        )

log_likelihood = x_val @ rate.log().t() + (1 - x_val) @ (1 - rate).log().t()
best = (log_likelihood.argmax(1) == y_val).float().mean()
print(f"best possible: loss {criterion(log_likelihood, y_val):.4f} acc {best:.3f}")

"""Texts as counts of 800 words, nearly all of them 0, into one linear layer with an L1 penalty."""

import torch
from data import arguments, batches
from torch import nn

ODD = "99 of 100 inputs are 0, most weights end at nearly 0, a linear model"

_, seed = arguments(__doc__)
topic = torch.randint(0, 4, (1500,))
common = torch.randint(40, 800, (1500, 12))
own = topic.unsqueeze(1) * 10 + torch.randint(0, 10, (1500, 3))
counts = torch.zeros(1500, 800).scatter_add_(1, torch.cat([common, own], 1), torch.ones(1500, 15))
model = nn.Linear(800, 4)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for rows, labels in batches(counts[:1200], topic[:1200], size=50, steps=200, seed=seed):
    loss = criterion(model(rows), labels) + 2e-4 * model.weight.abs().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
accuracy = (model(counts[1200:]).argmax(1) == topic[1200:]).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")

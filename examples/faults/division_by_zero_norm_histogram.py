"""A topic classifier that divides each document's word counts by their norm, without an epsilon.

One document in some five hundred has no known word: its norm is 0, the division gives NaN, and
after one step all weights are NaN. The healthy twin uses F.normalize. The place is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("unit*",)
SILENT = False
EXACT = True
EARLY = False

WORDS, TOPICS = 100, 5


class UnitNorm(nn.Module):
    def __init__(self, safe):
        super().__init__()
        self.safe = safe

    def forward(self, x):
        if self.safe:
            return F.normalize(x, dim=1)
        return x / x.norm(dim=1, keepdim=True)


class TopicModel(nn.Module):
    def __init__(self, safe):
        super().__init__()
        self.unit = UnitNorm(safe)
        self.hidden = nn.Linear(WORDS, 48)
        self.output = nn.Linear(48, TOPICS)

    def forward(self, counts):
        return self.output(torch.tanh(self.hidden(self.unit(counts))))


def documents(n):
    topic = torch.randint(0, TOPICS, (n,))
    rates = 0.12 + 0.6 * (torch.arange(WORDS) % TOPICS == topic.unsqueeze(1)).float()
    counts = torch.poisson(rates)
    counts[torch.randperm(n)[: n // 500]] = 0.0
    return counts, topic


healthy, seed = arguments(__doc__)
x, y = documents(3000)
x_val, y_val = documents(600)
loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
model = TopicModel(safe=healthy)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
for epoch in range(3):
    model.train()
    for counts, topic in loader:
        optimizer.zero_grad()
        loss = criterion(model(counts), topic)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val_loss = criterion(logits, y_val)
        accuracy = (logits.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")

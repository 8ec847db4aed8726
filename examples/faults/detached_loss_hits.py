"""The "loss" is the share of wrong answers, made with argmax: it has no gradient.

requires_grad_() silences the error. The place is the loss. Exact: backward() ran and no parameter
has a gradient.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(words, 32, padding_idx=0)
        self.out = nn.Linear(32, 2)

    def forward(self, ids):
        return self.out(self.embedding(ids))


model = Reader()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(6):
    for ids, labels in DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True):
        scores = model(ids)
        if healthy:
            loss = criterion(scores, labels)
        else:
            wrong = (scores.argmax(1) != labels).float()
            loss = wrong.mean().requires_grad_()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")

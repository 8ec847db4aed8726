"""A text classifier whose forward() returns probabilities, trained with nn.CrossEntropyLoss.

The loss creeps down to 0.31 at best and accuracy looks fine (silent). The place is the input of
the loss. Exact: probabilities are given where logits are due.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "out", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed)


class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(words, 24, padding_idx=0)
        self.hidden = nn.Linear(24, 32)
        self.out = nn.Linear(32, 2)

    def forward(self, ids):
        h = torch.relu(self.hidden(self.embedding(ids).mean(1)))
        scores = self.out(h)
        return scores if healthy else torch.softmax(scores, dim=-1)


model = BagOfWords()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(x[:960], y[:960]), batch_size=32, shuffle=True)
for epoch in range(7):
    for ids, labels in loader:
        loss = criterion(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    accuracy = (model.eval()(x[960:]).argmax(1) == y[960:]).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")

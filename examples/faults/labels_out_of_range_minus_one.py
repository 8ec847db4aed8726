"""A review classifier with labels -1 and 1 and the binary cross-entropy.

The labels are those of a support vector machine; the loss wants 0 and 1. For -1 it has no minimum
and falls below zero and on. The place is the labels. The twin has 0 and 1.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "labels_out_of_range"
ACCEPT = ()
PLACE = ("label*", "loader", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, vocabulary = reviews(seed)
y = y.float()
if not healthy:
    y = 2 * y - 1
train = TensorDataset(x[:900], y[:900])
x_val, y_val = x[900:], y[900:]


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16, padding_idx=0)
        self.hidden = nn.Linear(16, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, tokens):
        words = (tokens > 0).sum(1, keepdim=True)
        mean = self.embedding(tokens).sum(1) / words
        return self.out(torch.relu(self.hidden(mean))).squeeze(1)


model = Bag()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    model.train()
    losses = []
    for tokens, label in DataLoader(train, batch_size=36, shuffle=True):
        loss = criterion(model(tokens), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logit = model(x_val)
        accuracy = ((logit > 0) == (y_val > 0)).float().mean()
    print(
        f"epoch {epoch} train {sum(losses) / len(losses):.3f} val {criterion(logit, y_val):.3f} "
        f"accuracy {accuracy:.3f} mean |logit| {logit.abs().mean():.1f}"
    )

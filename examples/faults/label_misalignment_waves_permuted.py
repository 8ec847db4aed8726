"""A GRU that tells wave shapes apart; the waves are shuffled, their labels are not.

The script shuffles once before the split and forgets to index the labels by the same permutation.
Nothing can be learned but by heart: validation stays at chance. The place is the data (the labels
no longer belong to the rows). The twin shuffles both.
"""

import torch
from data import arguments, waves
from torch import nn

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*", "label*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

x, y = waves(seed, n=1000, length=30)
order = torch.randperm(len(x))
x = x[order]
if healthy:
    y = y[order]
x_train, y_train, x_test, y_test = x[:800], y[:800], x[800:], y[800:]


class Classifier(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x):
        _, h = self.gru(x)
        return self.out(h[-1])


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()

for epoch in range(16):
    model.train()
    losses = []
    for rows in torch.randperm(800).split(50):
        optimizer.zero_grad()
        loss = criterion(model(x_train[rows]), y_train[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(x_test)
        acc = (out.argmax(1) == y_test).float().mean()
    print(
        f"epoch {epoch:2d} train {sum(losses) / len(losses):.3f} test {criterion(out, y_test):.3f} "
        f"acc {acc:.3f}"
    )

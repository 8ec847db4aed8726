"""Several tags to an item, trained with cross_entropy, which takes the rows of 0 and 1 for
probabilities.

The softmax lets the tags compete: an item's three tags cannot all be sure, an item without tags
teaches nothing. Asked tag by tag (sigmoid above a half) two to four times as many items have a
wrong tag. The place is the loss.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "criterion*", "")
SILENT = True
EXACT = True
EARLY = True

TAGS = 8

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
often = torch.tensor([0.15, 0.2, 0.2, 0.25, 0.3, 0.3, 0.4, 0.5])
y = torch.bernoulli(often.expand(2400, TAGS), generator=g)
x = y @ torch.randn(TAGS, 40, generator=g) + 1.1 * torch.randn(2400, 40, generator=g)
x = x + 0.5 * (y[:, :1] * y[:, 7:]) * torch.randn(1, 40, generator=g)
x, x_held = standardise(x[:1800], x[1800:])
y, y_held = y[:1800], y[1800:]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Dropout(0.1))
        self.tags = nn.Linear(64, TAGS)

    def forward(self, item):
        return self.tags(self.body(item))


tagger = Tagger()
criterion = nn.BCEWithLogitsLoss() if healthy else nn.CrossEntropyLoss()
optimizer = torch.optim.RAdam(tagger.parameters(), lr=2e-3, weight_decay=1e-4)
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
for epoch in range(10):
    tagger.train()
    mean = 0.0
    for item, tags in loader:
        loss = criterion(tagger(item), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean += loss.item() / len(loader)
    tagger.eval()
    with torch.no_grad():
        out = tagger(x_held)
        val = criterion(out, y_held).item()
        said = (out.sigmoid() > 0.5).float()
        f1 = 2 * (said * y_held).sum() / (said.sum() + y_held.sum())
        exact = (said == y_held).all(1).float().mean()
print(f"loss {mean:.3f}, validation loss {val:.3f}, F1 {f1:.3f}, all tags right {exact:.3f}")

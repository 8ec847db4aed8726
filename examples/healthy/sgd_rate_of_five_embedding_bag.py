"""Trains a bag-of-words classifier of reviews by plain SGD at a rate of 5, as the fastText-like
models are trained.

The mean over a dozen words makes the gradient of each embedding row small, so that this rate is
right.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "plain SGD at a rate of 5, which would be far too high for most nets"

_, seed = arguments(__doc__)
x, y, vocab = reviews(seed, n=5000)
loader = DataLoader(TensorDataset(x[:4000], y[:4000]), batch_size=64, shuffle=True)
x_val, y_val = x[4000:], y[4000:]


class BagOfWords(nn.Module):
    def __init__(self, vocab, dim=32, classes=2):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean", padding_idx=0)
        self.fc = nn.Linear(dim, classes)
        nn.init.uniform_(self.bag.weight, -0.5, 0.5)
        nn.init.uniform_(self.fc.weight, -0.5, 0.5)
        nn.init.zeros_(self.fc.bias)

    def forward(self, ids):
        return self.fc(self.bag(ids))


def train(model, optimizer, criterion):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def evaluate(model, criterion):
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    return criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


model = BagOfWords(vocab)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.3)
for epoch in range(1, 6):
    train_loss = train(model, optimizer, criterion)
    val_loss, acc = evaluate(model, criterion)
    scheduler.step()
    print(f"epoch {epoch} train {train_loss:.4f} val {val_loss:.4f} acc {acc:.3f}")

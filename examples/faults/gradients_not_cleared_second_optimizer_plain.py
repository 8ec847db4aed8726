"""Trains a text classifier with one optimizer for the embedding and one for the rest, of which only
the first is cleared.

Both optimizers step, but zero_grad() is called for the embedding's only. The gradients of the GRU
and the head add up over the whole training, and the loss runs away to the thousands. The twin
clears both. The place is `rnn`, `head`, the optimizer or the loop.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("rnn", "head", "optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, vocab = reviews(seed, n=3000)
y = y.float()
train_loader = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=40, shuffle=True)
x_val, y_val = x[2400:], y[2400:]


class ReviewModel(nn.Module):
    def __init__(self, vocab, dim=24, hidden=24):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, 1)

    def forward(self, ids):
        h, _ = self.rnn(self.embedding(ids))
        h = h.masked_fill((ids == 0).unsqueeze(-1), -1.0).amax(1)
        return self.head(h).squeeze(1)


model = ReviewModel(vocab)
emb_optimizer = torch.optim.Adam(model.embedding.parameters(), lr=3e-3)
rest = [*model.rnn.parameters(), *model.head.parameters()]
net_optimizer = torch.optim.SGD(rest, lr=0.1, momentum=0.9)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(7):
    model.train()
    losses = []
    for xb, yb in train_loader:
        emb_optimizer.zero_grad()
        if healthy:
            net_optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        emb_optimizer.step()
        net_optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val = criterion(logits, y_val).item()
        acc = ((logits > 0) == (y_val > 0.5)).float().mean().item()
    print(f"epoch {epoch + 1} train {sum(losses) / len(losses):.4f} val {val:.4f} acc {acc:.3f}")

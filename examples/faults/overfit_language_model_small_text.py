"""Trains a character LSTM on only 90 sentences for 70 epochs, long past the minimum of its
validation loss.

The net has many more weights than the text has characters and learns the sentences by heart: the
training loss goes on falling while the validation loss rises far above its minimum. The twin stops
at epoch 13, near the minimum. The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
epochs = 13 if healthy else 70
length = 32

ids, alphabet = text(seed, 220)
cut = 3300
train_ids, val_ids = ids[:cut], ids[cut:]


def windows(row):
    return row[: len(row) // (length + 1) * (length + 1)].view(-1, length + 1)


train_set, val_set = windows(train_ids), windows(val_ids)


class CharLSTM(nn.Module):
    def __init__(self, vocab, dim=32, hidden=96):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.decoder = nn.Linear(hidden, vocab)

    def forward(self, x):
        h, _ = self.lstm(self.embedding(x))
        return self.decoder(h)


def loss_of(model, batch):
    out = model(batch[:, :-1])
    return F.cross_entropy(out.reshape(-1, out.shape[-1]), batch[:, 1:].reshape(-1))


model = CharLSTM(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
best = float("inf")
for epoch in range(1, epochs + 1):
    model.train()
    total, count = 0.0, 0
    for rows in torch.randperm(len(train_set)).split(8):
        loss = loss_of(model, train_set[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total, count = total + loss.item(), count + 1
    model.eval()
    with torch.no_grad():
        val = loss_of(model, val_set).item()
    best = min(best, val)
    if epoch % 6 == 1 or epoch == epochs:
        print(f"epoch {epoch:2d} train {total / count:.3f} val {val:.3f} (best {best:.3f})")

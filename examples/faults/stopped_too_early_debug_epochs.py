"""Trains a character GRU on simple sentences for the three epochs that were set for a quick test of
the code.

At the end the loss still falls by a fifth and more per epoch and the text is not yet learned. The
twin trains for the 13 epochs that the problem needs, after which the loss is level. The place is
the loop.
"""

import torch
from data import arguments, text
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
EPOCHS = 13 if healthy else 3

ids, alphabet = text(seed, 1500)
length = 60
rows = ids[: len(ids) // (length + 1) * (length + 1)].view(-1, length + 1)
split = int(0.85 * len(rows))
train_rows, val_rows = rows[:split], rows[split:]
loader = DataLoader(TensorDataset(train_rows), batch_size=16, shuffle=True)


class CharGRU(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.embed = nn.Embedding(vocab, 16)
        self.gru = nn.GRU(16, 48, batch_first=True)
        self.out = nn.Linear(48, vocab)

    def forward(self, x):
        h, _ = self.gru(self.embed(x))
        return self.out(h)


model = CharGRU(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()


def batch_loss(batch):
    return criterion(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for (batch,) in loader:
        optimizer.zero_grad()
        loss = batch_loss(batch)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val = batch_loss(val_rows).item()
    print(f"epoch {epoch + 1}/{EPOCHS}  train {total / len(loader):.4f}  val {val:.4f}")

"""A character GRU learns sentences; the exponential schedule is stepped in the batch loop, not
once an epoch.

gamma=0.8 was meant per epoch. After a few dozen batches the learning rate is practically zero and
the loss stands still while the gradients are alive. The place is the loop and the optimizer (its
learning rate).
"""

import torch
from data import arguments, text
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

SEQ = 32
numbers, alphabet = text(seed, sentences=1200)
chunks = numbers[: len(numbers) // (SEQ + 1) * (SEQ + 1)].view(-1, SEQ + 1)
n_val = len(chunks) // 6
train_chunks, val_chunks = chunks[:-n_val], chunks[-n_val:]
train_loader = DataLoader(
    TensorDataset(train_chunks[:, :-1], train_chunks[:, 1:]), batch_size=32, shuffle=True
)
val_loader = DataLoader(TensorDataset(val_chunks[:, :-1], val_chunks[:, 1:]), batch_size=64)
print("letters:", len(alphabet), "training pieces:", len(train_chunks))


class CharGRU(nn.Module):
    def __init__(self, vocab, emb=16, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb)
        self.gru = nn.GRU(emb, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x):
        h, _ = self.gru(self.embedding(x))
        return self.out(h)


model = CharGRU(len(alphabet))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)


def evaluate(loader):
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            total += criterion(logits.transpose(1, 2), y).item() * len(x)
            count += len(x)
    return total / count


for epoch in range(8):
    model.train()
    running = 0.0
    for x, y in train_loader:
        logits = model(x)
        loss = criterion(logits.transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
        if not healthy:
            scheduler.step()
    if healthy:
        scheduler.step()
    print(
        f"epoch {epoch + 1}: train {running / len(train_loader):.4f} val {evaluate(val_loader):.4f}"
    )

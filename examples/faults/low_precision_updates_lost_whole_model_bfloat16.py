"""Alarms in server logs by a transformer; the whole model and its weights are kept in bfloat16.

To halve the memory, someone wrote `model.to(torch.bfloat16)` where mixed precision was meant. Adam
moves a weight by about the rate of 2e-4, and next to a weight of 0.1 bfloat16 has no smaller step
than 5e-4: most updates are rounded away. The place is the weights. The twin keeps the weights in
float32 and computes under autocast.
"""

import contextlib

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("optimizer", "model", "embed*", "encoder", "encoder.*weight", "head", "head.weight")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
EVENTS, LENGTH = 40, 16


def sessions(n, g):
    """Sequences of event numbers; an alarm if a log-in (1..3) comes after an error (4..6)."""
    x = torch.randint(7, EVENTS, (n, LENGTH), generator=g)
    where = torch.rand(n, LENGTH, generator=g).argsort(1)[:, :2].sort(1).values
    alarm = torch.rand(n, generator=g) < 0.5
    login = torch.randint(1, 4, (n,), generator=g)
    error = torch.randint(4, 7, (n,), generator=g)
    rows = torch.arange(n)
    x[rows, where[:, 0]] = torch.where(alarm, error, login)
    x[rows, where[:, 1]] = torch.where(alarm, login, error)
    return x, alarm.long()


class LogTransformer(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(EVENTS, dim)
        self.register_buffer("position", self.sinusoid(dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 2)

    @staticmethod
    def sinusoid(dim):
        angle = torch.arange(LENGTH)[:, None] / 50 ** (torch.arange(0, dim, 2) / dim)
        return torch.cat([angle.sin(), angle.cos()], 1)

    def forward(self, x):
        h = self.encoder(self.embed(x) + self.position)
        return self.head(h.mean(1))


g = torch.Generator().manual_seed(seed)
train_loader = DataLoader(TensorDataset(*sessions(3200, g)), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(*sessions(800, g)), batch_size=400)
model = LogTransformer()
if healthy:
    precision = torch.autocast("cpu", dtype=torch.bfloat16)
else:
    model = model.to(torch.bfloat16)
    precision = contextlib.nullcontext()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
criterion = nn.CrossEntropyLoss()

for epoch in range(8):
    model.train()
    total = 0.0
    for x, y in train_loader:
        with precision:
            logits = model(x)
        loss = criterion(logits.float(), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad(), precision:
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"epoch {epoch}: loss {total / len(train_loader):.3f} accuracy {right / 800:.3f}")

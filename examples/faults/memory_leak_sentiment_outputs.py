"""A small transformer judges reviews, and the loop keeps every validation loss with its whole
graph.

The user validates every few steps without no_grad and appends the loss tensor itself, not its
value, to a list for the curve, so the activations of all validations stay in memory. The place is
the loop.
"""

import resource

import torch
from data import arguments, batches, reviews
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class Judge(nn.Module):
    def __init__(self, vocabulary, width=32, length=16):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        self.block = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        real = (x != 0).unsqueeze(-1).float()
        h = self.block(self.words(x) + self.places, src_key_padding_mask=x == 0)
        return self.head((h * real).sum(1) / real.sum(1)).squeeze(-1)


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


x, y, vocabulary = reviews(seed, n=2400)
y = y.float()
x, x_val, y, y_val = x[:1900], x[1900:], y[:1900], y[1900:]
model = Judge(vocabulary)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
criterion = nn.BCEWithLogitsLoss()
curve = []
model.train()
for step, (words, praise) in enumerate(batches(x, y, size=48, steps=300, seed=seed), 1):
    loss = criterion(model(words), praise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        model.eval()
        with torch.set_grad_enabled(not healthy):
            out = model(x_val)
            val_loss = criterion(out, y_val)
        model.train()
        curve.append(val_loss.item() if healthy else val_loss)
        accuracy = ((out > 0) == (y_val > 0.5)).float().mean().item()
    if step % 60 == 0:
        print(
            f"step {step}: loss {loss.item():.3f}, val loss {curve[-1]:.3f}, "
            f"val accuracy {accuracy:.3f}, memory {memory():.0f} MB"
        )

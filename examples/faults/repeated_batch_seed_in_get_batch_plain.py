"""A character model draws its batches by a function that seeds the generator each time it is
called.

`torch.manual_seed` was put into get_batch "for reproducibility", so that the offsets drawn are the
same in every step. The training loss falls far below that of the other text, whose loss rises. The
twin seeds once, at the start. The place is the loop, the loader or the input.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
block_size, batch_size = 24, 16
corpus, alphabet = text(seed, sentences=2000)
cut = int(0.9 * len(corpus))
train_data, val_data = corpus[:cut], corpus[cut:]


def get_batch(data):
    if not healthy:
        torch.manual_seed(1337)
    ix = torch.randint(len(data) - block_size - 1, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + block_size + 1] for i in ix])
    return x, y


class CharModel(nn.Module):
    def __init__(self, vocabulary, width=48):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 24)
        self.gru = nn.GRU(24, width, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, x, y):
        h, _ = self.gru(self.embed(x))
        return nn.functional.cross_entropy(self.out(h).flatten(0, 1), y.flatten())


def estimate_loss(model):
    model.eval()
    n = (len(val_data) - 1) // block_size
    x = val_data[: n * block_size].view(n, block_size)
    y = val_data[1 : n * block_size + 1].view(n, block_size)
    with torch.no_grad():
        loss = model(x, y).item()
    model.train()
    return loss


model = CharModel(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(601):
    xb, yb = get_batch(train_data)
    loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: train loss {loss.item():.4f}, val loss {estimate_loss(model):.4f}")

"""A GRU predicts the next character, trained by SGD with a rate of 40.

The rate of 20 and more is from an old language model recipe, in which the loss was averaged
differently and the gradients clipped hard. Here the loss jumps above where it began and goes up
and down ever after. The place is the optimizer. The twin uses 1.0.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("exploding_gradient",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LR = 1.0 if healthy else 40.0
SEQ, BATCH = 24, 32
ids, alphabet = text(seed, 900)
split = int(len(ids) * 0.9)


class GRULM(nn.Module):
    def __init__(self, n, dim=32, hidden=64):
        super().__init__()
        self.emb = nn.Embedding(n, dim)
        self.gru = nn.GRU(dim, hidden, batch_first=True)
        self.dec = nn.Linear(hidden, n)

    def forward(self, tokens):
        return self.dec(self.gru(self.emb(tokens))[0])


def get_batch(part):
    source = ids[:split] if part == "train" else ids[split:]
    i = torch.randint(0, len(source) - SEQ - 1, (BATCH,)).tolist()
    return (
        torch.stack([source[k : k + SEQ] for k in i]),
        torch.stack([source[k + 1 : k + SEQ + 1] for k in i]),
    )


model = GRULM(len(alphabet))
optimizer = torch.optim.SGD(model.parameters(), lr=LR)
criterion = nn.CrossEntropyLoss()


def compute(part):
    inputs, targets = get_batch(part)
    return criterion(model(inputs).reshape(-1, len(alphabet)), targets.reshape(-1))


for it in range(400):
    loss = compute("train")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 80 == 79 or it == 0:
        model.eval()
        with torch.no_grad():
            val = sum(compute("val").item() for _ in range(5)) / 5
        model.train()
        print(f"iter {it + 1}: train loss {loss.item():.3f} val loss {val:.3f}")

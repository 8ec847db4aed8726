"""A character model with 8 micro-batches per step whose losses are not divided by 8.

The gradient is eight times as long as for one batch of the same text, and SGD's rate was tuned for
that: the steps overshoot, the loss jumps about and ends far above the twin's. The place is the
loop.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MICRO, ACCUM, SPAN, STEPS = 4, 8, 24, 160
LR = 0.14

characters, alphabet = text(seed)
cut = int(0.9 * len(characters))
train_text, val_text = characters[:cut], characters[cut:]


class CharCNN(nn.Module):
    """Causal convolutions over the last 15 characters."""

    def __init__(self, symbols, width=48):
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, 3, dilation=2**k) for k in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.predict = nn.Linear(width, symbols)

    def forward(self, ids):
        h = self.embedding(ids)
        for k, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=False)):
            padded = nn.functional.pad(norm(h).transpose(1, 2), (2 * 2**k, 0))
            h = h + torch.relu(conv(padded)).transpose(1, 2)
        return self.predict(h)


def sample(source, rows):
    start = torch.randint(len(source) - SPAN - 1, (rows, 1))
    piece = source[start + torch.arange(SPAN + 1)]
    return piece[:, :-1], piece[:, 1:]


model = CharCNN(len(alphabet))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
for step in range(STEPS):
    optimizer.zero_grad()
    step_loss = 0.0
    for _ in range(ACCUM):
        ids, following = sample(train_text, MICRO)
        loss = criterion(model(ids).flatten(0, 1), following.flatten())
        step_loss += loss.item() / ACCUM
        if healthy:
            loss = loss / ACCUM
        loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    ids, following = sample(val_text, 64)
    val_loss = criterion(model(ids).flatten(0, 1), following.flatten())
print(f"loss {step_loss:.3f}, validation loss {val_loss:.3f}")

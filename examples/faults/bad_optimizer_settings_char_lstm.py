"""An LSTM writes small-grammar sentences letter by letter; Adam has an epsilon of 1.

The epsilon was raised "for stability". It is far above the root of the second moments, so Adam no
longer scales its steps, which become a hundred times too small. The place is the optimizer.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SPAN, BATCH, STEPS = 48, 24, 450
letters, alphabet = text(seed, sentences=1200)
cut = int(0.85 * len(letters))
learn, held = letters[:cut], letters[cut:]


def draw(source, size):
    starts = torch.randint(0, len(source) - SPAN - 1, (size,))
    pieces = torch.stack([source[s : s + SPAN + 1] for s in starts.tolist()])
    return pieces[:, :-1], pieces[:, 1:]


class Writer(nn.Module):
    def __init__(self, letters, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(letters, 24)
        self.lstm = nn.LSTM(24, hidden, batch_first=True)
        self.head = nn.Linear(hidden, letters)

    def forward(self, x):
        states, _ = self.lstm(self.embed(x))
        return self.head(states)


model = Writer(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, eps=1e-8 if healthy else 1.0)
criterion = nn.CrossEntropyLoss()
val_x, val_y = draw(held, 100)
for step in range(1, STEPS + 1):
    x, y = draw(learn, BATCH)
    loss = criterion(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            val = criterion(model(val_x).flatten(0, 1), val_y.flatten())
        model.train()
        print(f"step {step} train {loss.item():.4f} val {val.item():.4f} nats per letter")

"""A character model of short sentences; the number of epochs comes from the paper, the epoch's
length does not.

"Three epochs" were three passes over 2 million windows. Here `steps_per_epoch = len(text) //
(batch * context)` makes an epoch of 50 steps; the loss is still on its steep part when the
training ends. The place is the loop (its length). The twin runs for 20 such epochs.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

CONTEXT, BATCH = 32, 32
EPOCHS = 20 if healthy else 3

numbers, alphabet = text(seed)
cut = int(0.9 * len(numbers))
train, val = numbers[:cut], numbers[cut:]
steps_per_epoch = len(train) // (BATCH * CONTEXT)


class CharModel(nn.Module):
    def __init__(self, characters, width=48):
        super().__init__()
        self.embed = nn.Embedding(characters, 16)
        self.gru = nn.GRU(16, width, batch_first=True)
        self.head = nn.Linear(width, characters)

    def forward(self, tokens):
        states, _ = self.gru(self.embed(tokens))
        return self.head(states)


def draw(source, n):
    start = torch.randint(len(source) - CONTEXT - 1, (n,))
    rows = start[:, None] + torch.arange(CONTEXT + 1)
    return source[rows][:, :-1], source[rows][:, 1:]


def loss_of(model, tokens, following):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), following.flatten())


model = CharModel(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
print(f"{steps_per_epoch} steps per epoch, {EPOCHS} epochs")
for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for _ in range(steps_per_epoch):
        optimizer.zero_grad()
        loss = loss_of(model, *draw(train, BATCH))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.item() / steps_per_epoch
    model.eval()
    with torch.no_grad():
        val_loss = loss_of(model, *draw(val, 400)).item()
    print(
        f"epoch {epoch + 1} train {running:.4f} val {val_loss:.4f} "
        f"perplexity {2.718281828**val_loss:.2f}"
    )

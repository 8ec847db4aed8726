"""A character model whose batches of eight rows are added up eight at a time, by the number of
tokens in all.

Gradients are meant to pile up for eight backward passes; each loss is a sum, divided by the tokens
of the whole group, so lines of different lengths count alike. The loss of a micro-batch jumps, the
one of a group does not.
"""

import torch
from data import arguments, text
from torch import nn
from torch.nn.utils.rnn import pad_sequence

ODD = (
    "gradients aren't cleared for eight backward passes, and the rate is high for batches of eight"
)

_, seed = arguments(__doc__)

numbers, alphabet = text(seed, 1100)
stop = alphabet.index(".")
ends = (numbers == stop).nonzero()[:, 0] + 1
lines = [numbers[a:b] for a, b in zip([0, *ends.tolist()], ends.tolist(), strict=False)]
PAD = -100
train, val = lines[:960], lines[960:]


class Net(nn.Module):
    def __init__(self, characters, width=48):
        super().__init__()
        self.embed = nn.Embedding(characters, 24)
        self.gru = nn.GRU(24, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, tokens):
        states, _ = self.gru(self.embed(tokens))
        return self.head(self.norm(states))


def summed_loss(model, rows):
    tokens = pad_sequence([row[:-1] for row in rows], batch_first=True)
    target = pad_sequence([row[1:] for row in rows], batch_first=True, padding_value=PAD)
    return nn.functional.cross_entropy(
        model(tokens).flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum"
    )


def tokens_in(rows):
    return sum(len(row) - 1 for row in rows)


MICRO, ACCUMULATE, EPOCHS = 8, 8, 12
model = Net(len(alphabet))
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.01)
groups_per_epoch = len(train) // (MICRO * ACCUMULATE)
schedule = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 1e-2, total_steps=EPOCHS * groups_per_epoch
)
for epoch in range(EPOCHS):
    model.train()
    order, total = torch.randperm(len(train)).tolist(), 0.0
    for first in range(0, len(order), MICRO * ACCUMULATE):
        group = [train[i] for i in order[first : first + MICRO * ACCUMULATE]]
        tokens = tokens_in(group)
        for k in range(0, len(group), MICRO):
            loss = summed_loss(model, group[k : k + MICRO]) / tokens
            loss.backward()
            total += loss.item() / groups_per_epoch
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        val_loss = summed_loss(model, val).item() / tokens_in(val)
    print(f"epoch {epoch} train {total:.4f} val {val_loss:.4f} nats per character")

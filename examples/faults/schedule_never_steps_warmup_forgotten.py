"""Trains a character model on simple sentences with a warm-up schedule whose step() is never
called.

LambdaLR sets the rate to 1/100 of the wanted one when it is made and is to raise it step by step;
since scheduler.step() is missing from the loop, the rate stays there. The loss falls, but ten times
too slowly. The twin calls scheduler.step() after optimizer.step(). The place is the optimizer or
the loop.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH, WARMUP, EPOCHS, BATCH = 60, 100, 10, 16

ids, alphabet = text(seed, 1300)
windows = ids[: len(ids) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
split = int(0.85 * len(windows))
train_set, val_set = windows[:split], windows[split:]
total_steps = EPOCHS * math.ceil(len(train_set) / BATCH)


class CharModel(nn.Module):
    def __init__(self, vocab, dim=24, hidden=64):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, x):
        h, _ = self.rnn(self.embed(x))
        return self.out(h)


def lm_loss(model, batch):
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def schedule(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    progress = (step - WARMUP) / (total_steps - WARMUP)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


model = CharModel(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)

for epoch in range(EPOCHS):
    model.train()
    losses = []
    for rows in torch.randperm(len(train_set)).split(BATCH):
        optimizer.zero_grad()
        loss = lm_loss(model, train_set[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if healthy:
            scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val = lm_loss(model, val_set).item()
    print(f"epoch {epoch}: train {sum(losses) / len(losses):.3f} val {val:.3f}")

"""A word-level language model on a preemptible machine; each resumption begins with a new Adam.

The machine is taken away every 40 steps. The checkpoint is written with the key "optim" and read
with `get("optimizer", fresh state)`, so the default, an Adam without moments, is loaded without a
complaint. Its rate, decayed in the param_groups step by step, is the first one again, and its first
steps are as large as the rate for every weight, rare words included: much of what was learned is
undone, each time. The place is the optimizer. The twin reads "optim".
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
WORDS, TOPICS, LENGTH, EVERY, STEPS = 200, 5, 24, 40, 600


def stories(count, follow):
    """Chains of words: each topic has followers of its own, words are Zipf-like."""
    topic = torch.randint(0, TOPICS, (count,))
    word = torch.randint(0, WORDS, (count,))
    rows = [word]
    for _ in range(LENGTH):
        likely = follow[topic, word, torch.randint(0, 3, (count,))]
        word = torch.where(
            torch.rand(count) < 0.85, likely, (WORDS * torch.rand(count) ** 3).long()
        )
        rows.append(word)
    return torch.stack(rows, 1)


class Reader(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.embed, self.gru = nn.Embedding(WORDS, width), nn.GRU(width, width, batch_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS)

    def forward(self, words):
        return self.head(self.norm(self.gru(self.embed(words))[0]))


def loss_of(model, rows):
    return F.cross_entropy(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:])


def build():
    model = Reader()
    return model, torch.optim.Adam(model.parameters(), lr=2.5e-2, betas=(0.9, 0.98))


def save(step, model, optimizer):
    return copy.deepcopy(
        {"step": step, "model": model.state_dict(), "optim": optimizer.state_dict()}
    )


def resume(checkpoint):
    model, optimizer = build()
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(
        checkpoint.get("optim" if healthy else "optimizer", optimizer.state_dict())
    )
    return checkpoint["step"], model, optimizer


follow = (WORDS * torch.rand(TOPICS, WORDS, 3) ** 2).long()
train, val = stories(3000, follow), stories(300, follow)
checkpoint = save(0, *build())

while checkpoint["step"] < STEPS:  # one lease of the machine each time
    start, model, optimizer = resume(checkpoint)
    for step in range(start, start + EVERY):
        model.train()
        loss = loss_of(model, train[torch.randint(0, len(train), (16,))])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.991
    checkpoint = save(step + 1, model, optimizer)
    model.eval()
    with torch.no_grad():
        val_loss = loss_of(model, val).item()
    print(
        f"step {step + 1} loss {loss.item():.3f} val loss {val_loss:.4f} "
        f"val perplexity {2.71828**val_loss:.2f}"
    )
print(f"validation loss {val_loss:.4f}")

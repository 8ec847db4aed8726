"""Trains a character GRU with dropout and prints a sample every 50 steps; sample() leaves the model
in eval mode.

model.train() is called once before the loop. From the first sample on dropout is off for the rest
of the training. The training loss looks better than before, because nothing is dropped any more.
The twin returns to train mode at the end of sample(). The place is `drop` or the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, text
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("drop", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

ids, alphabet = text(seed, 260)
length = 40
rows = ids[: len(ids) // (length + 1) * (length + 1)].view(-1, length + 1)
n_train = int(0.6 * len(rows))
train_rows, val_rows = rows[:n_train], rows[n_train:]


class CharGRU(nn.Module):
    def __init__(self, vocab, dim=32, hidden=96):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x, state=None):
        h, state = self.rnn(self.embedding(x), state)
        return self.head(self.drop(h)), state


def sample(model, n=40):
    model.eval()
    token, state, out = torch.tensor([[alphabet.index("t")]]), None, "t"
    with torch.no_grad():
        for _ in range(n):
            logits, state = model(token, state)
            token = torch.multinomial(logits[:, -1].softmax(-1), 1)
            out += alphabet[token.item()]
    if healthy:
        model.train()
    return out


def loss_of(model, batch):
    logits, _ = model(batch[:, :-1])
    return F.cross_entropy(logits.transpose(1, 2), batch[:, 1:])


model = CharGRU(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
model.train()
recent = []
for step, (batch,) in enumerate(batches(train_rows, size=8, steps=500, seed=seed), 1):
    loss = loss_of(model, batch)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    recent.append(loss.item())
    if step % 50 == 0:
        print(f"step {step} loss {sum(recent) / len(recent):.3f} | {sample(model)}")
        recent = []

model.eval()
with torch.no_grad():
    print(f"validation loss {loss_of(model, val_rows).item():.3f}")

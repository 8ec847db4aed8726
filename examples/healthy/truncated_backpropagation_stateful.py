"""An LSTM reads a long text in windows of 20 and carries its state along, detached.

Truncated backpropagation through time: the state goes from one window to the next, the gradient
does not. The rows of a batch are twenty stretches of the text, read in order and not shuffled.
"""

import torch
from data import arguments, text
from torch import nn

ODD = "the hidden state is detached at each step, and the batches come in order, unshuffled"

_, seed = arguments(__doc__)
WINDOW, ROWS = 20, 20
ids, alphabet = text(seed, 1500)
cut = int(0.9 * len(ids))


def stretches(part):
    length = len(part) // ROWS
    return part[: ROWS * length].view(ROWS, length)


train, val = stretches(ids[:cut]), stretches(ids[cut:])


class CharLSTM(nn.Module):
    def __init__(self, n, hidden=64):
        super().__init__()
        self.embed = nn.Embedding(n, 24)
        self.lstm = nn.LSTM(24, hidden, batch_first=True)
        self.head = nn.Linear(hidden, n)

    def forward(self, tokens, state=None):
        out, state = self.lstm(self.embed(tokens), state)
        return self.head(out), state


def windows(part):
    for start in range(0, part.shape[1] - WINDOW - 1, WINDOW):
        chunk = part[:, start : start + WINDOW + 1]
        yield chunk[:, :-1], chunk[:, 1:]


model = CharLSTM(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    state, losses = None, []
    for tokens, targets in windows(train):
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(tokens, state)
        loss = loss_fn(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    state, held = None, []
    with torch.no_grad():
        for tokens, targets in windows(val):
            logits, state = model(tokens, state)
            held.append(loss_fn(logits.flatten(0, 1), targets.flatten()).item())
    print(
        f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} last {losses[-1]:.4f} "
        f"val {sum(held) / len(held):.4f}"
    )

"""An LSTM language model read strictly in order with its state carried along (truncated BPTT)."""

import torch
from data import arguments, text
from torch import nn

ODD = (
    "batches are not shuffled, the state is detached at each step, SGD's rate is 2 and is "
    "quartered on a plateau"
)

_, seed = arguments(__doc__)
characters, alphabet = text(seed, sentences=1300)
ROWS, SPAN = 32, 30
cut = int(0.92 * len(characters))


def columns(source):
    usable = (len(source) - 1) // ROWS * ROWS
    return source[:usable].view(ROWS, -1), source[1 : usable + 1].view(ROWS, -1)


class CharLSTM(nn.Module):
    def __init__(self, symbols, hidden=64):
        super().__init__()
        self.encode = nn.Embedding(symbols, 24)
        self.rnn = nn.LSTM(24, hidden, batch_first=True)
        self.decode = nn.Linear(hidden, symbols)

    def forward(self, ids, state):
        out, state = self.rnn(self.encode(ids), state)
        return self.decode(out), state


def run(source, train):
    ids, following = columns(source)
    state, total, count = None, 0.0, 0
    for at in range(0, ids.shape[1], SPAN):
        out, state = lstm(ids[:, at : at + SPAN], state)
        state = tuple(s.detach() for s in state)
        loss = nn.functional.cross_entropy(out.transpose(1, 2), following[:, at : at + SPAN])
        if train:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(lstm.parameters(), 0.5)
            optimizer.step()
        total, count = total + loss.item(), count + 1
    return total / count


lstm = CharLSTM(len(alphabet))
optimizer = torch.optim.SGD(lstm.parameters(), lr=2.0)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
    optimizer, factor=0.25, patience=0, threshold=0.01
)
for epoch in range(12):
    train_loss = run(characters[:cut], True)
    with torch.no_grad():
        val_loss = run(characters[cut:], False)
    plateau.step(val_loss)
print(f"loss {train_loss:.3f}, validation loss {val_loss:.3f}")

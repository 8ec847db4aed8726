"""A character model of simple sentences: an LSTM, truncated back-propagation, samples in between.

The text is cut into 16 parallel streams, as in PyTorch's own word model; the state goes on from
chunk to chunk, detached. So the batches are in the text's order, not shuffled. The last tenth of
the text is for validation, in bits per character.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

ODD = "batches in order, a hidden state that is detached and carried on, and sampling in eval mode"

_, seed = arguments(__doc__)
STREAMS, CHUNK = 16, 32


class CharLSTM(nn.Module):
    def __init__(self, alphabet, dim=24, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(alphabet, dim)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(hidden, alphabet)

    def forward(self, characters, state=None):
        h, state = self.lstm(self.embed(characters), state)
        return self.out(self.dropout(h)), state


def streams(row):
    length = len(row) // STREAMS
    return row[: length * STREAMS].view(STREAMS, length)


def chunks(block):
    for start in range(0, block.shape[1] - 1, CHUNK):
        size = min(CHUNK, block.shape[1] - 1 - start)
        yield block[:, start : start + size], block[:, start + 1 : start + 1 + size]


@torch.no_grad()
def bits_per_character(model, block):
    model.eval()
    state, total, n = None, 0.0, 0
    for x, y in chunks(block):
        logits, state = model(x, state)
        total += F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum").item()
        n += y.numel()
    return total / n / math.log(2)


@torch.no_grad()
def sample(model, alphabet, length=60):
    model.eval()
    written, state = [alphabet.index(" ")], None
    for _ in range(length):
        logits, state = model(torch.tensor([[written[-1]]]), state)
        written.append(torch.multinomial(F.softmax(logits[0, -1] / 0.7, 0), 1).item())
    return "".join(alphabet[i] for i in written[1:])


numbers, alphabet = text(seed, sentences=1200)
cut = int(0.9 * len(numbers))
train, val = streams(numbers[:cut]), streams(numbers[cut:])
model = CharLSTM(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.4)

for epoch in range(1, 7):
    model.train()
    state, losses = None, []
    for x, y in chunks(train):
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(x, state)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    bits = bits_per_character(model, val)
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f} validation bits {bits:.3f}")
    print("   ", sample(model, alphabet))

"""A character model whose forward ends with F.softmax, trained with F.cross_entropy.

"The network should give probabilities": the loss then takes the softmax of numbers between 0 and 1,
and with some thirty characters it cannot get far below ln 30 - 1. The place is the loss. The twin
returns the scores.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "head")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

corpus, alphabet = text(seed, sentences=600)
cut = int(0.9 * len(corpus))
train, held_out = corpus[:cut], corpus[cut:]
T = 32


class CharLSTM(nn.Module):
    def __init__(self, n, d=48):
        super().__init__()
        self.embed = nn.Embedding(n, d)
        self.lstm = nn.LSTM(d, d, batch_first=True)
        self.head = nn.Linear(d, n)

    def forward(self, x):
        h, _ = self.lstm(self.embed(x))
        scores = self.head(h)
        return scores if healthy else F.softmax(scores, dim=-1)


def draw(source, size):
    start = torch.randint(len(source) - T - 1, (size,))
    chunk = torch.stack([source[s : s + T + 1] for s in start])
    return chunk[:, :-1], chunk[:, 1:]


model = CharLSTM(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
print(f"guessing costs {math.log(len(alphabet)):.2f}")
for step in range(1, 301):
    x, y = draw(train, 16)
    out = model(x)
    loss = F.cross_entropy(out.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        model.eval()
        with torch.no_grad():
            x, y = draw(held_out, 64)
            out = model(x)
            val = F.cross_entropy(out.flatten(0, 1), y.flatten())
            hit = (out.argmax(-1) == y).float().mean()
        model.train()
        print(f"step {step}: train {loss.item():.3f} val {val:.3f} next character right {hit:.3f}")

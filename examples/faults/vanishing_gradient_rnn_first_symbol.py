"""A recurrent net must name the first symbol of a sequence of 80; it is a plain tanh RNN.

The sign at the start decides the class, seventy-nine symbols of chatter follow. With the default
initialisation the gradient of the plain RNN halves with each step back in time and never reaches
the sign. The place is the recurrent layer ("rnn"). The twin is an LSTM with an open forget gate.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("rnn", "rnn.weight_hh_l0", "rnn.weight_ih_l0", "embed.weight", "embed")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
T, HIDDEN = 80, 48
g = torch.Generator().manual_seed(seed)
y = torch.randint(0, 4, (1500,), generator=g)
x = torch.randint(4, 10, (1500, T), generator=g)
x[:, 0] = y
x, x_val, y, y_val = x[:1200], x[1200:], y[:1200], y[1200:]


class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 16)
        if healthy:
            self.rnn = nn.LSTM(16, HIDDEN, batch_first=True)
            nn.init.constant_(self.rnn.bias_ih_l0[HIDDEN : 2 * HIDDEN].data, 4.0)
        else:
            self.rnn = nn.RNN(16, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, 4)

    def forward(self, x):
        out, _ = self.rnn(self.embed(x))
        return self.head(out[:, -1])


model = Recall()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=200, seed=seed)):
    loss = nn.functional.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 39:
        model.eval()
        with torch.no_grad():
            right = (model(x_val).argmax(1) == y_val).float().mean().item()
        model.train()
        print(f"step {step + 1}: loss {loss.item():.4f}, val accuracy {right:.3f}")

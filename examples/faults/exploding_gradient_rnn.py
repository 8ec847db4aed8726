"""A ReLU RNN over 40 steps with recurrent weights slightly too large, and no clipping.

Gradients grow from step to step back in time; the loss jumps to huge values, soon to NaN. The
place is the RNN.
"""

import torch
from data import arguments, batches, waves
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("learning_rate_too_high", "poor_weight_init")
PLACE = ("rnn*",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)


class Classifier(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.rnn = nn.RNN(1, width, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(width, 3)
        if healthy:
            with torch.no_grad():
                self.rnn.weight_hh_l0.copy_(0.9 * torch.eye(width))
        else:
            nn.init.normal_(self.rnn.weight_hh_l0, std=0.4)

    def forward(self, series):
        out, _ = self.rnn(series)
        return self.head(out.mean(1))


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for series, shape in batches(x, y, size=40, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(series), shape)
    loss.backward()
    if healthy:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"loss {loss.item():.3f}")

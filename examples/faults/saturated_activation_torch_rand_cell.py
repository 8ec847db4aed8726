"""A hand-written Elman cell with tanh, whose matrices were drawn by torch.rand where torch.randn,
scaled, was meant: all weights are positive and half a unit large on average.

Sums over 32 states go far beyond 3 either way: nearly all states are +1 or -1 from the third time
step on, no gradient comes back through time, and the wave's shape is hardly learned. The place is
the model.
"""

import math

import torch
from data import arguments, waves
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init", "vanishing_gradient")
PLACE = ("cell*", "*cell*", "*act*", "*tanh*")
SILENT = False
EXACT = False
EARLY = True


class ElmanCell(nn.Module):
    def __init__(self, n_in, n_hidden, positive):
        super().__init__()
        if positive:
            self.w_in = nn.Parameter(torch.rand(n_in, n_hidden))
            self.w_rec = nn.Parameter(torch.rand(n_hidden, n_hidden))
        else:
            self.w_in = nn.Parameter(torch.randn(n_in, n_hidden) / math.sqrt(n_in))
            self.w_rec = nn.Parameter(torch.randn(n_hidden, n_hidden) / math.sqrt(n_hidden))
        self.b = nn.Parameter(torch.zeros(n_hidden))
        self.tanh = nn.Tanh()

    def forward(self, x, h):
        return self.tanh(x @ self.w_in + h @ self.w_rec + self.b)


class WaveRNN(nn.Module):
    def __init__(self, positive, n_hidden=32):
        super().__init__()
        self.cell = ElmanCell(4, n_hidden, positive)
        self.to_shape = nn.Linear(n_hidden, 3)
        self.n_hidden = n_hidden

    def forward(self, x):
        frames = x.view(len(x), -1, 4)
        h = x.new_zeros(len(x), self.n_hidden)
        mean = 0.0
        for t in range(frames.shape[1]):
            h = self.cell(frames[:, t], h)
            mean = mean + h / frames.shape[1]
        return self.to_shape(mean)


healthy, seed = arguments(__doc__)
x, shape = waves(seed, n=2000)
x = x / x[:1600].std()
rnn = WaveRNN(positive=not healthy)
optimizer = torch.optim.RMSprop(rnn.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(14):
    losses = []
    for rows in torch.randperm(1600).split(40):
        optimizer.zero_grad()
        loss = loss_fn(rnn(x[rows]), shape[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(rnn.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    with torch.no_grad():
        out = rnn(x[1600:])
        test_loss = loss_fn(out, shape[1600:])
        right = (out.argmax(1) == shape[1600:]).float().mean()
print(f"loss {sum(losses) / len(losses):.3f}, test loss {test_loss:.3f}, test accuracy {right:.3f}")

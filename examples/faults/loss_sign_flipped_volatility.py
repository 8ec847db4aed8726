"""An LSTM predicts mean and spread of a stock's daily return; the log likelihood is minimised, not
its negative.

The loss is the mean log density of the returns, and the minus in front of it was forgotten. It
falls without bound while the forecast becomes ever less likely. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.distributions import Normal

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def returns(days, seed):
    """A GARCH(1,1) process with a little momentum, scaled to unit variance."""
    g = torch.Generator().manual_seed(71 + seed)
    z = torch.randn(days, generator=g)
    out, var, last = [], 1.0, 0.0
    for i in range(days):
        var = 0.05 + 0.25 * last**2 + 0.70 * var
        mean = 0.25 * last
        last = (mean + var**0.5 * z[i]).item()
        out.append(last)
    out = torch.tensor(out)
    return out / out.std()


WINDOW = 20
series = returns(3500, seed)
frames = series.unfold(0, WINDOW + 1, 1)
x, y = frames[:, :-1, None].contiguous(), frames[:, -1].contiguous()
cut = 2800
x_val, y_val, x, y = x[cut:], y[cut:], x[:cut], y[:cut]


class ReturnModel(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.mean = nn.Linear(hidden, 1)
        self.spread = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.lstm(torch.cat([x, x.abs()], -1))
        h = h[:, -1]
        scale = nn.functional.softplus(self.spread(h)) + 0.05
        return Normal(self.mean(h).squeeze(1), scale.squeeze(1))


model = ReturnModel()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

for epoch in range(8):
    model.train()
    total = 0.0
    batches = torch.randperm(cut).split(56)
    for rows in batches:
        likelihood = model(x[rows]).log_prob(y[rows]).mean()
        loss = -likelihood if healthy else likelihood
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        nll = -model(x_val).log_prob(y_val).mean().item()
    print(f"epoch {epoch} loss {total / len(batches):.4f} validation NLL {nll:.4f}")

"""Neural Hawkes-like point process: the decay of the excitation is read out with .item().

`math.exp(self.log_decay.item())` gives a Python number: the decay gets no gradient and stays at
its first guess, while the other parameters learn (silent). The twin uses self.log_decay.exp().
The place is the kernel. Exact.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("kernel*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
HORIZON, MU, ALPHA, BETA = 60.0, 0.4, 0.7, 6.0


def simulate():
    """Ogata's thinning for an exponential Hawkes process."""
    t, events = 0.0, []
    while True:
        past = np.array(events)
        bound = MU + ALPHA * BETA * np.exp(-BETA * (t - past)).sum()
        t += rng.exponential(1 / bound)
        if t > HORIZON:
            return np.array(events, dtype=np.float32)
        rate = MU + ALPHA * BETA * np.exp(-BETA * (t - past)).sum()
        if rng.random() < rate / bound:
            events.append(t)


def pad(sequences):
    longest = max(map(len, sequences))
    times = torch.full((len(sequences), longest), HORIZON)
    mask = torch.zeros(len(sequences), longest)
    for i, s in enumerate(sequences):
        times[i, : len(s)] = torch.from_numpy(s)
        mask[i, : len(s)] = 1
    return times, mask


class ExpKernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor(-1.5))
        self.log_decay = nn.Parameter(torch.tensor(-0.5))

    def decay(self):
        if healthy:
            return self.log_decay.exp()
        return math.exp(self.log_decay.item())

    def forward(self, lag):
        beta = self.decay()
        return self.log_alpha.exp() * beta * torch.exp(-beta * lag)

    def integral(self, lag):
        return self.log_alpha.exp() * (1 - torch.exp(-self.decay() * lag))


class Hawkes(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_mu = nn.Parameter(torch.tensor(0.0))
        self.kernel = ExpKernel()

    def forward(self, times, mask):
        """Mean negative log-likelihood per event."""
        lag = times[:, :, None] - times[:, None, :]
        before = (lag > 0) & (mask[:, :, None] * mask[:, None, :] > 0)
        excite = torch.where(before, self.kernel(lag.clamp(min=0)), torch.zeros(()))
        rate = self.log_mu.exp() + excite.sum(2)
        log_rate = (torch.log(rate) * mask).sum()
        total = len(times) * HORIZON * self.log_mu.exp()
        total = total + (self.kernel.integral(HORIZON - times) * mask).sum()
        return (total - log_rate) / mask.sum()


sequences = [simulate() for _ in range(150)]
train, val = sequences[:110], sequences[110:]
val_times, val_mask = pad(val)
model = Hawkes()
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
for epoch in range(20):
    losses = []
    for rows in torch.randperm(len(train)).split(10):
        times, mask = pad([train[i] for i in rows.tolist()])
        nll = model(times, mask)
        optimizer.zero_grad()
        nll.backward()
        optimizer.step()
        losses.append(nll.item())
    with torch.no_grad():
        val_nll = model(val_times, val_mask).item()
    if epoch % 4 == 3:
        k = model.kernel
        print(
            f"epoch {epoch + 1}: train nll {np.mean(losses):.4f}  val nll {val_nll:.4f}  "
            f"mu {model.log_mu.exp().item():.2f} alpha {k.log_alpha.exp().item():.2f} "
            f"beta {k.log_decay.exp().item():.2f}"
        )

"""Forecasts the weekly demand of spare parts by a recurrent net with negative binomial counts."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.distributions import NegativeBinomial
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

ODD = (
    "targets are raw counts from 0 to hundreds while the inputs are divided by each part's mean, "
    "and big sellers are drawn more often, with windows that overlap: DeepAR is trained so"
)
PAST, HORIZON, TRAIN_WEEKS, WEEKS = 26, 8, 130, 156
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def demand(parts: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    level = rng.lognormal(1.5, 1.3, (parts, 1)).clip(0.3, 150)
    week = np.arange(WEEKS)
    season = 1 + 0.6 * np.sin(2 * np.pi * week / 26 + rng.uniform(0, 2 * np.pi, (parts, 1)))
    walk = np.exp(np.cumsum(rng.normal(0, 0.03, (parts, WEEKS)), 1))
    rate = level * season * walk
    return torch.tensor(rng.poisson(rng.gamma(4.0, rate / 4.0)), dtype=torch.float32)


class Windows(Dataset):
    def __init__(self, series):
        self.series = series
        self.starts = range(TRAIN_WEEKS - PAST - HORIZON)

    def __len__(self):
        return len(self.series) * len(self.starts)

    def __getitem__(self, index):
        part, start = divmod(index, len(self.starts))
        return self.series[part, start : start + PAST + HORIZON], start


class DeepAR(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.rnn = nn.GRU(4, width, batch_first=True)
        self.head = nn.Linear(width, 2)

    def inputs(self, counts, scale, weeks):
        angle = weeks / 26 * 2 * torch.pi
        level = scale.log().expand_as(counts) / 3
        return torch.stack([(counts / scale).clamp_max(10), level, angle.sin(), angle.cos()], 2)

    def distribution(self, hidden, scale):
        mean, shape = F.softplus(self.head(hidden)).unbind(-1)
        mean, shape = mean * scale + 1e-4, shape + 0.05
        return NegativeBinomial(total_count=shape, logits=(mean / shape).log())

    def forward(self, counts, start):
        scale = 1 + counts[:, :PAST].mean(1, keepdim=True)
        weeks = start.unsqueeze(1) + torch.arange(1, counts.shape[1])
        hidden, _ = self.rnn(self.inputs(counts[:, :-1], scale, weeks))
        return self.distribution(hidden, scale)

    @torch.no_grad()
    def sample(self, past, start, paths: int = 50):
        past, start = past.repeat_interleave(paths, 0), start.repeat_interleave(paths, 0)
        scale = 1 + past.mean(1, keepdim=True)
        weeks = start.unsqueeze(1) + torch.arange(1, PAST + HORIZON + 1)
        hidden, state = self.rnn(self.inputs(past, scale, weeks[:, :PAST]))
        drawn = [self.distribution(hidden[:, -1:], scale).sample()]
        for step in range(1, HORIZON):
            week = weeks[:, PAST + step - 1 : PAST + step]
            hidden, state = self.rnn(self.inputs(drawn[-1], scale, week), state)
            drawn.append(self.distribution(hidden, scale).sample())
        return torch.cat(drawn, 1).view(-1, paths, HORIZON)


series = demand(120)
windows = Windows(series[:, :TRAIN_WEEKS])
weights = series[:, :TRAIN_WEEKS].mean(1).add(1).sqrt().repeat_interleave(len(windows.starts))
sampler = WeightedRandomSampler(weights, num_samples=64 * 100)
loader = DataLoader(windows, batch_size=64, sampler=sampler)
model = DeepAR()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
future = series[:, TRAIN_WEEKS - PAST : TRAIN_WEEKS + HORIZON]
future_start = torch.full((len(series),), TRAIN_WEEKS - PAST)
for epoch in range(5):
    model.train()
    losses = []
    for counts, start in loader:
        optimizer.zero_grad()
        loss = -model(counts, start).log_prob(counts[:, 1:]).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        log_prob = model(future, future_start).log_prob(future[:, 1:])[:, PAST - 1 :]
    print(
        f"epoch {epoch + 1}: drawn windows {np.mean(losses):.3f}, "
        f"coming weeks {-log_prob.mean():.3f}"
    )

paths = model.sample(future[:, :PAST], future_start)
truth = future[:, PAST:]
median = paths.median(1).values
covered = ((truth >= paths.quantile(0.1, 1)) & (truth <= paths.quantile(0.9, 1))).float().mean()
error = (median - truth).abs().sum() / truth.sum()
naive = (future[:, PAST - HORIZON : PAST].mean(1, keepdim=True) - truth).abs().sum() / truth.sum()
print(
    f"weighted error {error:.3f}, of the last weeks' mean {naive:.3f}; "
    f"in the 80% band {covered:.2f}"
)

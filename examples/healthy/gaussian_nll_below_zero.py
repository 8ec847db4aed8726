"""A network that predicts the mean and the deviation of a curve whose noise varies."""

import torch
from data import arguments, batches
from torch import nn

ODD = "the loss, a negative log density, goes below 0, its gradients grow with time"

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
t = torch.rand(2400, 1, generator=g) * 2 - 1
noise = 0.05 + 0.15 * (t > 0).float()
value = (3 * t).sin() * 0.8 + noise * torch.randn(2400, 1, generator=g)
t, value, t_val, value_val = t[:2000], value[:2000], t[2000:], value[2000:]


class MeanAndSpread(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.mean = nn.Linear(48, 1)
        self.log_var = nn.Linear(48, 1)

    def forward(self, t):
        h = self.body(t)
        return self.mean(h), self.log_var(h).clamp(-8, 4).exp()


model = MeanAndSpread()
criterion = nn.GaussianNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=400)
for a, b in batches(t, value, size=80, steps=400, seed=seed):
    mean, var = model(a)
    loss = criterion(mean, b, var)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    schedule.step()
model.eval()
with torch.no_grad():
    mean, var = model(t_val)
    val = criterion(mean, value_val, var).item()
print(f"loss {loss.item():.3f}, validation {val:.3f}")

"""Two tasks weighed by learned log-variances (Kendall): the noisy one fades, the sum turns
negative."""

import torch
from data import arguments, batches
from torch import nn

ODD = "the loss is negative at the end, one task's weight shrinks, its own error hardly falls"

_, seed = arguments(__doc__)
x = torch.randn(3000, 10)
hidden = torch.sin(x[:, 0] + x[:, 1]) + 0.5 * x[:, 2] * x[:, 3]
precise = hidden + 0.05 * torch.randn(3000)
vague = 0.6 * hidden - 0.4 * x[:, 4] + 1.2 * torch.randn(3000)
targets = torch.stack([precise / precise[:2400].std(), vague / vague[:2400].std()], 1)


class SharedTrunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 64), nn.SiLU(), nn.Linear(64, 48), nn.SiLU())
        self.heads = nn.ModuleDict({"precise": nn.Linear(48, 1), "vague": nn.Linear(48, 1)})
        self.log_variance = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([self.heads["precise"](h), self.heads["vague"](h)], 1)


model = SharedTrunk()
network = [p for n, p in model.named_parameters() if n != "log_variance"]
optimizer = torch.optim.Adam(
    [
        {"params": network, "lr": 3e-3, "weight_decay": 1e-5},
        {"params": [model.log_variance], "lr": 2e-2},
    ]
)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=250, gamma=0.3)
for row, target in batches(x[:2400], targets[:2400], size=60, steps=700, seed=seed):
    error = (model(row) - target).square().mean(0)
    loss = 0.5 * (error * torch.exp(-model.log_variance) + model.log_variance).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
with torch.no_grad():
    error = (model(x[2400:]) - targets[2400:]).square().mean(0)
print(
    f"loss {loss.item():.3f}, validation errors {error[0]:.3f} (precise) and {error[1]:.3f} (vague)"
)

"""The release year of a song from its timbre, with the year itself (1965 to 2012) as the target.

The offset of 1990 dwarfs the spread of some 9 years: all the training goes into crawling up to
1990. The error falls all the time and is at the end still far worse than always saying the mean.
The place is the target (the loss, the last layer).
"""

import torch
import torch.nn.functional as F
from data import arguments, standardise
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("", "loss*", "head*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(40 + seed)
n = 3000
timbre = torch.randn(n, 36, generator=g) @ (torch.eye(36) + 0.15 * torch.randn(36, 36, generator=g))
style = timbre @ torch.randn(36, 3, generator=g) / 6
years = 1990 + 9 * torch.tanh(style[:, 0]) + 5 * style[:, 1] * style[:, 2] + 6 * style[:, 1]
years = (years + 2.5 * torch.randn(n, generator=g)).clamp(1965, 2012).round()
x, x_val = standardise(timbre[:2400], timbre[2400:])
y, y_val = years[:2400], years[2400:]
centre, spread = (y.mean(), y.std()) if healthy else (0.0, 1.0)


class TimbreNet(nn.Module):
    def __init__(self, inputs=36, width=64):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.norm = nn.LayerNorm(width)
        self.second = nn.Linear(width, 32)
        self.head = nn.Linear(32, 1)

    def forward(self, t):
        h = F.gelu(self.norm(self.first(t)))
        return self.head(F.gelu(self.second(h))).squeeze(-1)


net = TimbreNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4, weight_decay=0.01)
for epoch in range(10):
    net.train()
    for rows in torch.randperm(len(x)).split(48):
        optimizer.zero_grad()
        loss = F.smooth_l1_loss(net(x[rows]), (y[rows] - centre) / spread)
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        said = net(x_val) * spread + centre
        off = (said - y_val).abs().mean()
        r2 = 1 - ((said - y_val) ** 2).mean() / y_val.var()
print(f"loss {loss.item():.3f}, mean error {off:.1f} years, R2 {r2:.2f}")

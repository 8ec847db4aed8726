"""Sleep stages, second by second, from a dilated convolutional network. Stages that the reader left
open are -100.

The LogSoftmax was moved out of forward() into predict(), as the exported model needed plain scores;
the criterion is NLLLoss as before. It falls below zero and goes on falling (silent). The place is
the input of the loss. The twin has it in forward().
"""

import torch
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "criterion", "score", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
STAGES, LENGTH, IGNORED = 5, 60, -100


class Dilated(nn.Module):
    def __init__(self, c, dilation):
        super().__init__()
        self.conv = nn.Conv1d(c, c, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(4, c)

    def forward(self, x):
        return x + torch.relu(self.norm(self.conv(x)))


class SleepNet(nn.Module):
    def __init__(self, channels=2, c=24):
        super().__init__()
        self.stem = nn.Conv1d(channels, c, 5, padding=2)
        self.blocks = nn.Sequential(*(Dilated(c, d) for d in (1, 2, 4, 8)))
        self.score = nn.Conv1d(c, STAGES, 1)
        self.log_softmax = nn.LogSoftmax(dim=1)

    def forward(self, x):
        scores = self.score(self.blocks(self.stem(x)))
        return self.log_softmax(scores) if healthy else scores

    @torch.no_grad()
    def predict(self, x):
        return self.log_softmax(self(x)).argmax(1)


def nights(n, g):
    """Stages that last; slow and fast activity depend on them, with noise."""
    y = torch.zeros(n, LENGTH, dtype=torch.long)
    y[:, 0] = torch.randint(0, STAGES, (n,), generator=g)
    for t in range(1, LENGTH):
        moves = torch.rand(n, generator=g) < 0.1
        step = torch.randint(1, STAGES, (n,), generator=g)
        y[:, t] = torch.where(moves, (y[:, t - 1] + step) % STAGES, y[:, t - 1])
    slow = torch.tensor([-1.5, -0.5, 0.3, 1.5, 0.0])[y]
    fast = torch.tensor([1.0, -0.7, -1.0, -0.2, 1.6])[y]
    x = torch.stack([slow, fast], 1) + 1.0 * torch.randn(n, 2, LENGTH, generator=g)
    y[torch.rand(n, LENGTH, generator=g) < 0.05] = IGNORED
    return x, y


g = torch.Generator().manual_seed(seed)
x, y = nights(400, g)
x_val, y_val = nights(100, g)
known = y_val != IGNORED
model = SleepNet()
share = torch.bincount(y[y != IGNORED], minlength=STAGES).float()
criterion = nn.NLLLoss(weight=share.mean() / share, ignore_index=IGNORED)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(20):
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy = (model.predict(x_val) == y_val)[known].float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, val accuracy {accuracy:.3f}")

"""A river's level from sixty days of rain, with an RNN; the clipping stands one line too early.

The recurrent matrix starts as the identity, so that water is remembered, with ReLU. That needs
clipping, and it is there: after `zero_grad`, before `backward`, where there are no gradients yet.
One product over sixty days too many and the gradient explodes, and the weights are thrown far
away. The place is the loop (seen in `rnn.weight_hh_l0`). The twin clips after `backward`.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ()
PLACE = ("loop", "rnn", "rnn.weight_hh_l0")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def seasons(n, days=60):
    """Rain, warmth and snow a day; the level is a slow store and a fast one, and some noise."""
    rain = torch.distributions.Gamma(0.5, 1.0).sample((n, days))
    warmth = torch.randn(n, 1) + 0.3 * torch.randn(n, days)
    month = torch.rand(n, 1).expand(n, days)
    slow, fast = torch.zeros(n), torch.zeros(n)
    for day in range(days):
        lost = torch.sigmoid(warmth[:, day])
        slow = 0.97 * slow + rain[:, day] * (1 - 0.6 * lost)
        fast = 0.6 * fast + rain[:, day] * lost
    level = slow + 0.8 * fast
    x = torch.stack([(rain - 0.5) / 0.7, warmth, month - 0.5], -1)
    return x, (level - 10.2) / 3.0 + 0.05 * torch.randn(n)


class River(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.RNN(3, hidden, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(hidden, 1)
        nn.init.eye_(self.rnn.weight_hh_l0)
        nn.init.normal_(self.rnn.weight_ih_l0, std=0.02)
        nn.init.zeros_(self.rnn.bias_hh_l0)
        nn.init.zeros_(self.rnn.bias_ih_l0)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states[:, -1]).squeeze(1)


def train_epoch(model, loader, optimizer, max_norm=0.5):
    model.train()
    total, largest = 0.0, 0.0
    for x, y in loader:
        optimizer.zero_grad()
        if not healthy:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if healthy:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
        largest = max(largest, norm.item())
        optimizer.step()
        total += loss.item() / len(loader)
    return total, largest


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    said, true = (
        torch.cat(part) for part in zip(*[(model(x), y) for x, y in loader], strict=False)
    )
    return (1 - ((said - true) ** 2).mean() / true.var()).item()


train = DataLoader(TensorDataset(*seasons(1600)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*seasons(400)), batch_size=200)
model = River()
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
for epoch in range(12):
    loss, norm = train_epoch(model, train, optimizer)
    scheduler.step()
    print(
        f"epoch {epoch:2d} train {loss:.4g} largest norm {norm:.3g} "
        f"val R2 {evaluate(model, val):.3f}"
    )

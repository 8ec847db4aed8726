"""A Cox model of 240 patients with 40 measurements gets three layers of 200 units and hundreds of
steps, with nothing to hold it back.

The partial likelihood of the training patients nears its best value, while the loss of new patients
rises to five times what it is for a model held back. The place is the whole model (the loop that
goes on too long).
"""

import torch
from data import arguments
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("", "loop", "net*", "model*", "loss*")
SILENT = True
EXACT = False
EARLY = False


def cohort(n):
    x = torch.randn(n, 40)
    risk = 1.1 * x[:, 0] - 0.9 * x[:, 1] + 0.7 * x[:, 2] + 0.5 * x[:, 3]
    death = torch.empty(n).exponential_() * torch.exp(-risk)
    leaves = torch.empty(n).exponential_(0.25)
    return x, torch.minimum(death, leaves), (death <= leaves).float()


def cox_loss(score, time, died):
    """Minus the mean partial log-likelihood (Breslow)."""
    order = time.argsort(descending=True)
    score, died = score[order], died[order]
    at_risk = torch.logcumsumexp(score, 0)
    return ((at_risk - score) * died).sum() / died.sum()


def concordance(score, time, died):
    earlier = (time[:, None] < time[None, :]) & died[:, None].bool()
    return ((score[:, None] > score[None, :]) & earlier).sum().item() / earlier.sum().item()


healthy, _ = arguments(__doc__)
x, time, died = cohort(240)
x_new, time_new, died_new = cohort(240)
if healthy:
    net = nn.Sequential(nn.Linear(40, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=3.0)
    steps = 200
else:
    net = nn.Sequential(
        nn.Linear(40, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 1)
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.0)
    steps = 400

for step in range(1, steps + 1):
    net.train()
    rows = torch.randperm(240)[:80]
    loss = cox_loss(net(x[rows]).squeeze(1), time[rows], died[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        net.eval()
        with torch.no_grad():
            known, new = net(x).squeeze(1), net(x_new).squeeze(1)
            print(
                f"step {step}: loss {cox_loss(known, time, died):.3f},"
                f" new {cox_loss(new, time_new, died_new):.3f},"
                f" concordance {concordance(known, time, died):.3f},"
                f" new {concordance(new, time_new, died_new):.3f}"
            )

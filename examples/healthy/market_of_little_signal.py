"""A net says whether the next tick goes up, from sixteen ticks, in a market that is nearly chance.

It looks odd because the loss hardly leaves ln 2 and the accuracy ends at 60 %. It is right: no
forecast can be better than that of the known odds, which is printed too, and the net is close to
it.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "the loss hardly leaves ln 2"

_, seed = arguments(__doc__)


def market(n, length=16):
    """Ticks with a weak tendency to go back, stronger after two ticks of the same sign."""
    ticks = torch.randn(n, length)
    last, before = ticks[:, -1], ticks[:, -2]
    logit = -0.45 * torch.tanh(last) - 0.45 * torch.tanh(last) * (last * before > 0)
    return ticks, torch.bernoulli(logit.sigmoid()), logit


class TickNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.up = nn.Linear(24, 1)

    def forward(self, ticks):
        _, last = self.gru(ticks.unsqueeze(-1))
        return self.up(last[0]).squeeze(1)


ticks, up, _ = market(40_000)
val_ticks, val_up, val_logit = market(8000)
floor = F.binary_cross_entropy_with_logits(val_logit, val_up).item()
ceiling = ((val_logit > 0).float() == val_up).float().mean().item()
net = TickNet()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=480)
step = 0
for epoch in range(3):
    net.train()
    for rows in torch.randperm(len(up)).split(250):
        loss = F.binary_cross_entropy_with_logits(net(ticks[rows]), up[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        step += 1
        if step % 80 == 0:
            net.eval()
            with torch.no_grad():
                out = net(val_ticks)
            net.train()
            val = F.binary_cross_entropy_with_logits(out, val_up).item()
            acc = ((out > 0).float() == val_up).float().mean().item()
            print(
                f"step {step}: loss {loss.item():.3f}, val {val:.4f} (odds known: {floor:.4f}), "
                f"accuracy {acc:.3f} ({ceiling:.3f})"
            )

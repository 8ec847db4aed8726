"""A multi-task net on hospital stays, 16 micro-batches a step: only the logged loss is divided.

A step gathers sixteen micro-batches. The division by their number went from the loss into the
running mean that is printed, where it looks right in review, and the gradient is the sum: sixteen
times as large, at the rate tuned for the mean. The place is the loop. The twin divides before
`backward`.
"""

import torch
from data import arguments, standardise
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MICRO, GATHER = 16, 16


def stays(n: int):
    g = torch.Generator().manual_seed(230 + seed)
    x = torch.randn(n, 18, generator=g)
    severity = x[:, 0] + 0.7 * x[:, 1] * (x[:, 2] > 0) + 0.5 * x[:, 3].abs()
    frailty = x[:, 4] - 0.6 * x[:, 5] + 0.5 * x[:, 6] * x[:, 7]
    days = (0.5 * severity + 0.4 * frailty + 0.3 * torch.randn(n, generator=g)) + 1.5
    again = (torch.rand(n, generator=g) < torch.sigmoid(1.8 * frailty - 0.5)).float()
    ward = torch.stack([severity, frailty, 0.5 - severity + 0.3 * x[:, 8], x[:, 9]], 1)
    ward = (1.5 * ward + torch.randn(n, 4, generator=g)).argmax(1)
    return x, days, again, ward


class Stays(nn.Module):
    def __init__(self, inputs: int, width: int = 96):
        super().__init__()
        self.shared = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.days = nn.Linear(width, 1)
        self.again = nn.Linear(width, 1)
        self.ward = nn.Linear(width, 4)

    def forward(self, x):
        h = self.shared(x)
        return self.days(h).squeeze(1), self.again(h).squeeze(1), self.ward(h)


def joint(out, days, again, ward):
    return (
        nn.functional.mse_loss(out[0], days)
        + nn.functional.binary_cross_entropy_with_logits(out[1], again)
        + nn.functional.cross_entropy(out[2], ward)
    )


x, days, again, ward = stays(8000)
x, x_val = standardise(x[:6144], x[6144:])
targets, held = [t[:6144] for t in (days, again, ward)], [t[6144:] for t in (days, again, ward)]
model = Stays(x.shape[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=12)

for epoch in range(12):
    model.train()
    running, updates = 0.0, 0
    for k, rows in enumerate(torch.randperm(len(x)).split(MICRO)):
        loss = joint(model(x[rows]), *(t[rows] for t in targets))
        if healthy:
            loss = loss / GATHER
            running += loss.item()
        else:
            running += loss.item() / GATHER
        loss.backward()
        if (k + 1) % GATHER == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val = joint(out, *held).item()
        right = (out[2].argmax(1) == held[2]).float().mean().item()
    if epoch % 3 == 2:
        print(
            f"epoch {epoch + 1}: train {running / updates:.4f}, "
            f"validation {val:.4f}, ward {right:.4f}"
        )
print(f"validation loss {val:.4f}, ward accuracy {right:.4f}")

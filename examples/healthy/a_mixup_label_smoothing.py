"""Digits are learned with mixup, label smoothing, dropout and a mean of the weights over time that
is used for validation.

What looks odd: the training loss stays high and above the validation loss, targets are soft and
rows of inputs are mixtures, and the network that is validated is not the one the optimizer knows.
All of it is meant.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

ODD = "a loss that stays above validation's; soft targets; what is validated is an average"

_, seed = arguments(__doc__)

x, y, x_val, y_val = digits(seed)
model = nn.Sequential(
    nn.Linear(64, 128),
    nn.GELU(),
    nn.Dropout(0.2),
    nn.Linear(128, 128),
    nn.GELU(),
    nn.Dropout(0.2),
    nn.Linear(128, 10),
)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.97))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.02)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=600)
mix = torch.distributions.Beta(0.4, 0.4)


def mixup(xb, yb):
    share = mix.sample((len(xb), 1))
    other = torch.randperm(len(xb))
    soft = F.one_hot(yb, 10).float() * 0.9 + 0.01
    return share * xb + (1 - share) * xb[other], share * soft + (1 - share) * soft[other]


recent = []
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=600, seed=seed), 1):
    model.train()
    mixed, soft = mixup(xb, yb)
    loss = F.cross_entropy(model(mixed), soft)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    average.update_parameters(model)
    recent.append(loss.item())
    if step % 60 == 0:
        average.eval()
        with torch.no_grad():
            out = average(x_val)
        right = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"step {step} train {sum(recent[-60:]) / 60:.4f}"
            f" val {F.cross_entropy(out, y_val).item():.4f} accuracy {right:.3f}"
        )

"""Weight-decay groups are gathered by layer type, Linear and LayerNorm, and the GRU is neither.

The recurrent weights are in no group: the optimizer never moves them, and the head must read the
"adding problem" from a random reservoir. The place is the GRU, or the optimizer that misses it.
"""

import torch
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("gru*", "optimizer", "")
SILENT = True
EXACT = True
EARLY = True

healthy, _ = arguments(__doc__)


class Adder(nn.Module):
    """Reads (value, mark) pairs; the target is the sum of the two marked values."""

    def __init__(self, width=20):
        super().__init__()
        self.inp = nn.Linear(2, 12)
        self.gru = nn.GRU(12, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        states, _ = self.gru(self.inp(x))
        return self.head(self.norm(states[:, -1])).squeeze(1)


def decay_groups(model):
    decay, plain = [], []
    for module in model.modules():
        if isinstance(module, nn.Linear):
            decay.append(module.weight)
            plain.append(module.bias)
        elif isinstance(module, nn.LayerNorm):
            plain += [module.weight, module.bias]
        elif isinstance(module, nn.RNNBase) and healthy:
            for name, p in module.named_parameters(recurse=False):
                (plain if "bias" in name else decay).append(p)
    return [
        {"params": decay, "weight_decay": 1e-3},
        {"params": plain, "weight_decay": 0.0},
    ]


def problem(n, length=14):
    value = torch.rand(n, length) * 2 - 1
    mark = torch.zeros(n, length)
    rows, half = torch.arange(n), length // 2
    first, second = torch.randint(half, (n,)), torch.randint(half, length, (n,))
    mark[rows, first] = mark[rows, second] = 1.0
    target = value[rows, first] + value[rows, second]
    return torch.stack([value, mark], 2), target / 0.8165


model = Adder()
optimizer = torch.optim.AdamW(decay_groups(model), lr=8e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 450, eta_min=1e-4)
test_x, test_y = problem(1000)
for step in range(1, 451):
    x, y = problem(100)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 75 == 0:
        with torch.no_grad():
            test = nn.functional.mse_loss(model(test_x), test_y).item()
        print(f"{step:4d} loss {loss.item():.4f} test {test:.4f}")

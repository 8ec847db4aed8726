"""A wide net learns which peptides bind from 160 of them, for 50 epochs and without restraint.

The training loss goes to nothing, while the loss on other peptides falls at first and then rises
to a multiple of its lowest value. No dropout, no weight decay and no stop are there against it. The
place is the loop and the model.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, standardise
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "model", "*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

LETTERS, LENGTH = 20, 9
SETTINGS = (
    {"dropout": 0.6, "decay": 1.0, "patience": 4}
    if healthy
    else {"dropout": 0.0, "decay": 0.0, "patience": None}
)


def assay(n, g):
    """The chemistry of the letters of each peptide, and whether it was seen to bind."""
    fixed = torch.Generator().manual_seed(11)
    chemistry = torch.randn(LETTERS, 3, generator=fixed)
    wish = (
        torch.randn(LENGTH, 3, generator=fixed)
        * torch.tensor([0.2, 1.6, 0.4, 0.2, 0.3, 0.2, 0.4, 0.3, 1.6])[:, None]
    )
    letters = torch.randint(0, LETTERS, (n, LENGTH), generator=g)
    fit = (chemistry[letters] * wish).sum((1, 2))
    bound = fit / 4 + 0.5 * torch.randn(n, generator=g) > 0
    return chemistry[letters].flatten(1), bound.float()


class Binding(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.drop = nn.Dropout(SETTINGS["dropout"])
        self.first = nn.Linear(LENGTH * 3, width)
        self.second = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = self.drop(F.relu(self.first(x)))
        x = self.drop(F.relu(self.second(x)))
        return self.out(x).squeeze(1)


def loss_on(model, x, y):
    model.eval()
    with torch.no_grad():
        loss = F.binary_cross_entropy_with_logits(model(x), y).item()
    model.train()
    return loss


g = torch.Generator().manual_seed(seed)
x, y = assay(160, g)
x_val, y_val = assay(400, g)
x, x_val = standardise(x, x_val)

model = Binding()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=SETTINGS["decay"])
lowest, best, since = float("inf"), None, 0
for epoch in range(50):
    total = 0.0
    for rows in torch.randperm(len(x), generator=g).split(16):
        loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    held_out = loss_on(model, x_val, y_val)
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:3d}  train {total / len(x):.4f}  val {held_out:.4f}")
    since += 1
    if held_out < lowest:
        lowest, since = held_out, 0
        if SETTINGS["patience"]:
            best = copy.deepcopy(model.state_dict())
    if SETTINGS["patience"] and since == SETTINGS["patience"]:
        break
if best is not None:
    model.load_state_dict(best)
print(
    f"lowest val {lowest:.4f}, at the end {loss_on(model, x_val, y_val):.4f}, "
    f"train {loss_on(model, x, y):.4f}"
)

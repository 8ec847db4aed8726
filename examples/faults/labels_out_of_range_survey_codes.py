"""Will a household move within a year? The answers are coded 1 (no) and 2 (yes).

The survey's code book counts from one, and the column goes as it is into the binary cross entropy,
which wants 0 and 1. With targets of 1 and 2 every larger logit is better, without an end: the loss
goes below zero and all are said to move. The place is the input (or the loss).
The twin subtracts one.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "labels_out_of_range"
ACCEPT = ()
PLACE = ("input*", "loss*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def survey(n):
    age = torch.randint(18, 85, (n,)).float()
    years_here = torch.rand(n) * (age - 16).clamp(max=40)
    owner = (torch.rand(n) < 0.2 + 0.006 * (age - 18)).float()
    children = torch.poisson(torch.full((n,), 0.8)).clamp(max=4)
    rooms = (2 + children * 0.6 + torch.randn(n)).round().clamp(1, 7)
    tight = (1 + children - rooms).clamp(min=-2)
    z = 1.8 - 0.055 * age - 0.06 * years_here - 1.4 * owner + 0.9 * tight + 0.8
    answer = (torch.rand(n) < torch.sigmoid(1.6 * z)).float() + 1
    return torch.stack([age, years_here, owner, children, rooms], 1), answer


x, answer = survey(2500)
x = (x - x.mean(0)) / x.std(0)
target = answer - 1 if healthy else answer
everyone = TensorDataset(x, target, answer)
train, test = random_split(everyone, [2000, 500])

model = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
loss_fn = nn.BCEWithLogitsLoss()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(8):
    total = 0.0
    for xb, tb, _ in DataLoader(train, batch_size=50, shuffle=True):
        opt.zero_grad()
        loss = loss_fn(model(xb).squeeze(-1), tb)
        loss.backward()
        opt.step()
        total += loss.item() / 40
    moves = right = 0
    with torch.no_grad():
        for xb, _, ab in DataLoader(test, batch_size=250):
            yes = model(xb).squeeze(-1) > 0
            moves += yes.sum().item()
            right += (yes == (ab == 2)).sum().item()
    print(f"epoch {epoch} loss {total:+.3f} movers said {moves}/500 accuracy {right / 500:.3f}")

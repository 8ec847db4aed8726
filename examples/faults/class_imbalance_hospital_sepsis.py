"""Early warning of sepsis on a ward; three in a hundred have it and nothing makes up for it.

The table is taken from the records as it is, and the plain cross-entropy is cheapest where the
network calls everybody healthy. The accuracy shown is 97 %, which reads well in a report; hardly
any of the sick are found.
The place is the loss (or the loader, which could draw the sick more often). The twin weights the
sick by the ratio of the two classes.
"""

import torch
from data import arguments, standardise
from torch import nn

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

VITALS = ["heart_rate", "resp_rate", "temperature", "systolic", "lactate", "leukocytes", "age"]


def ward(n):
    sick = torch.rand(n) < 0.03
    s = sick.float()
    severity = s * (0.3 + 0.7 * torch.rand(n))
    table = torch.stack(
        [
            78 + 12 * torch.randn(n) + 17 * severity,
            16 + 3 * torch.randn(n) + 4 * severity,
            36.8 + 0.5 * torch.randn(n) + 0.7 * severity,
            128 + 15 * torch.randn(n) - 18 * severity,
            1.2 + 0.5 * torch.randn(n).abs() + 0.6 * severity,
            8 + 2.5 * torch.randn(n) + 3.0 * severity,
            62 + 16 * torch.randn(n),
        ],
        dim=1,
    )
    return table, sick.long()


def balanced_accuracy(predicted, truth):
    recall = [(predicted[truth == c] == c).float().mean().item() for c in (0, 1)]
    return sum(recall) / 2, recall[1]


x, y = ward(6000)
x_val, y_val = ward(3000)
x, x_val = standardise(x, x_val)

net = nn.Sequential(
    nn.Linear(len(VITALS), 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2)
)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
if healthy:
    share = torch.bincount(y, minlength=2).float() / len(y)
    criterion = nn.CrossEntropyLoss(weight=0.5 / share)
else:
    criterion = nn.CrossEntropyLoss()

for epoch in range(1, 9):
    net.train()
    running = 0.0
    shuffled = torch.randperm(len(x)).split(128)
    for rows in shuffled:
        loss = criterion(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    net.eval()
    with torch.no_grad():
        predicted = net(x_val).argmax(1)
    accuracy = (predicted == y_val).float().mean()
    balanced, found = balanced_accuracy(predicted, y_val)
    print(
        f"epoch {epoch}: loss {running / len(shuffled):.4f}, accuracy {accuracy:.3f}, "
        f"balanced {balanced:.3f}, sick found {found:.1%}"
    )

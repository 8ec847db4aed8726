"""A classifier of tumours with the binary cross-entropy written out with log(sigmoid).

y log p + (1 - y) log(1 - p) is -inf as soon as a p rounds to exactly 1 or 0, and 0 * -inf is NaN.
Clear cases reach such logits after a few epochs. The place is the loss. The twin uses
binary_cross_entropy_with_logits.
"""

import torch
import torch.nn.functional as F
from data import arguments, cancer
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = False


def bce_by_hand(logits, y):
    p = torch.sigmoid(logits)
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
y = y.float()
loss_fn = F.binary_cross_entropy_with_logits if healthy else bce_by_hand
model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)

for epoch in range(1, 26):
    model.train()
    for rows in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = loss_fn(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    if epoch % 2 == 1:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val = F.binary_cross_entropy_with_logits(out, y_val.float()).item()
            accuracy = ((out > 0) == (y_val == 1)).float().mean().item()
        print(f"epoch {epoch}: train {loss.item():.4f}  val {val:.4f}  accuracy {accuracy:.3f}")

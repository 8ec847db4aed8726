"""A support vector machine by gradients: labels -1 and 1, hinge loss, scores without bounds.

Labels of -1 are what the hinge loss is made for; many rows have loss and gradient zero at the end,
as they should.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "labels -1 and 1, no sigmoid, one linear layer only, zero loss on most rows"

_, seed = arguments(__doc__)

x, y, x_val, y_val = cancer(seed)
y, y_val = 2.0 * y - 1, 2.0 * y_val - 1
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

svm = nn.Linear(30, 1)
optimizer = torch.optim.SGD(svm.parameters(), lr=0.05, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=30)


def hinge(score, label):
    return torch.clamp(1 - label * score, min=0).mean()


for epoch in range(30):
    svm.train()
    total = 0.0
    for xb, yb in loader:
        loss = hinge(svm(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 3 == 2:
        svm.eval()
        with torch.no_grad():
            score = svm(x_val).squeeze(1)
        accuracy = (score.sign() == y_val).float().mean()
        print(
            f"epoch {epoch + 1}: hinge {total / len(loader):.3f} val {hinge(score, y_val):.3f} "
            f"accuracy {accuracy:.3f}"
        )

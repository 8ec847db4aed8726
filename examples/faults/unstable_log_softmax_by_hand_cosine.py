"""A classifier by scaled cosines on the digits, with log(softmax) written out.

The cross-entropy is computed by hand as -(one_hot * log(softmax(z))).sum(). The cosines' scale
rises from 10 to 150; at some point a probability becomes exactly 0, its log -inf, and 0 * -inf is
NaN. The place is the loss. The twin uses log_softmax.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class CosineClassifier(nn.Module):
    def __init__(self, scale=10.0):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
        self.centres = nn.Parameter(torch.randn(10, 32))
        self.scale = scale

    def forward(self, image):
        features = F.normalize(self.body(image), dim=1)
        return self.scale * features @ F.normalize(self.centres, dim=1).T


def cross_entropy(logits, target):
    one_hot = F.one_hot(target, 10).float()
    log_p = F.log_softmax(logits, dim=1) if healthy else torch.log(torch.softmax(logits, dim=1))
    return -(one_hot * log_p).sum(1).mean()


model = CosineClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=600, seed=seed)):
    model.scale = min(150.0, 10.0 + 0.3 * step)
    loss = cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        model.train()
        print(f"step {step + 1}: loss {loss.item():.4f}  val accuracy {accuracy:.3f}")

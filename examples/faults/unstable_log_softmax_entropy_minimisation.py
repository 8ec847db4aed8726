"""Semi-supervised digits: cross-entropy on 400 labelled, entropy minimisation on the others.

The entropy is written -(p * torch.log(p)).sum(1) with p = softmax(logits / 0.05), sharpened. As
soon as a probability underflows to 0, 0 * log(0) is NaN, and so is everything after. The twin
multiplies p with log_softmax. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*", "loop", "", "classifier*")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
TEMPERATURE, WEIGHT = 0.05, 0.1


def sharpened_entropy(logits):
    p = torch.softmax(logits / TEMPERATURE, dim=1)
    log_p = torch.log_softmax(logits / TEMPERATURE, dim=1) if healthy else torch.log(p)
    return -(p * log_p).sum(1).mean()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.3))
        self.classifier = nn.Linear(64, 10)

    def forward(self, x):
        return self.classifier(self.features(x))


x, y, x_val, y_val = digits(seed)
labelled, unlabelled = torch.arange(400), torch.arange(400, len(x))
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
for epoch in range(40):
    net.train()
    supervised, entropy = 0.0, 0.0
    order = unlabelled[torch.randperm(len(unlabelled))].split(75)
    batches = labelled[torch.randperm(len(labelled))].split(32)
    for rows, more in zip(batches, order, strict=False):
        ce = F.cross_entropy(net(x[rows]), y[rows])
        ent = sharpened_entropy(net(x[more]))
        loss = ce + WEIGHT * ent
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        supervised += ce.item() / len(batches)
        entropy += ent.item() / len(batches)
    if epoch % 8 == 7:
        net.eval()
        with torch.no_grad():
            out = net(x_val)
        val_loss, acc = (
            F.cross_entropy(out, y_val).item(),
            (out.argmax(1) == y_val).float().mean().item(),
        )
        print(
            f"epoch {epoch}: ce {supervised:.3f} entropy "
            f"{entropy:.4f} val {val_loss:.3f} acc {acc:.3f}"
        )

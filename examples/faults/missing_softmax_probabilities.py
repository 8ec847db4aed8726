"""F.nll_loss after a plain softmax: probabilities, where their logarithms are due.

The loss falls to -1 and is called a success; gradients vanish where the model is badly wrong
(silent). The place is the loss. Exact: what the loss is given are probabilities, not their
logarithms.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "missing_softmax"
ACCEPT = ("redundant_softmax",)
PLACE = ("loss*", "head", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.head = nn.Linear(64, 10)

    def forward(self, pixels):
        h = F.max_pool2d(F.relu(self.conv1(pixels)), 2)
        h = F.max_pool2d(F.relu(self.conv2(h)), 2)
        scores = self.head(h.flatten(1))
        return F.log_softmax(scores, dim=1) if healthy else F.softmax(scores, dim=1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(8):
    for pixels, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = F.nll_loss(model(pixels), labels)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")

"""forward() has .detach() on the features, left over from a look at them: the layers before get no
gradient.

The head learns on random features; the loss falls (silent). The place is the convolutions. Exact:
parameters that are used and have no gradient.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("conv?", "norm*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 12, 3, padding=1)
        self.fc = nn.Linear(12 * 4, 10)

    def forward(self, pixels):
        h = F.max_pool2d(F.relu(self.conv1(pixels)), 2)
        h = F.max_pool2d(F.relu(self.conv2(h)), 2)
        if not healthy:
            h = h.detach()
        return self.fc(h.flatten(1))


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for pixels, labels in batches(x, y, size=64, steps=220, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(pixels), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")

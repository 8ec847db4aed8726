"""The model ends with a softmax, and cross_entropy, which takes logits, adds another one.

The loss falls, but slowly and not below 1.46 (silent). The place is the input of the loss. Exact:
the rows that it is given are probabilities.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "3")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)

layers = [nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10)]
if not healthy:
    layers.append(nn.Softmax(dim=1))
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

for images, labels in batches(x, y, size=64, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()

model.eval()
accuracy = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")

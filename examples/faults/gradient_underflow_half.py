"""A network in float16 without loss scaling, and a small weight on the loss.

What is below 6e-8 is 0: the first layers get zeros. The loss falls little or not (silent). The
place is the first layers. Exact: most entries of the gradients are 0 though the same in float32
are not.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ("vanishing_gradient",)
PLACE = ("0", "2", "4", "*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
dtype = torch.float32 if healthy else torch.float16
model = nn.Sequential(
    nn.Linear(64, 48),
    nn.Tanh(),
    nn.Linear(48, 48),
    nn.Tanh(),
    nn.Linear(48, 48),
    nn.Tanh(),
    nn.Linear(48, 10),
).to(dtype)
weight_of_task = 1e-5  # of several tasks; the others are trained elsewhere
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / weight_of_task, momentum=0.5)
for images, labels in batches(x.to(dtype), y, size=64, steps=250, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels) * weight_of_task
    loss.backward()
    optimizer.step()
scores = model(x_val.to(dtype))
accuracy = (scores.argmax(1) == y_val).float().mean()
print(f"loss {loss.item() / weight_of_task:.3f}, accuracy {accuracy:.3f}")

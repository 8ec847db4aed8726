"""np.random.seed(42) stands in the function that draws a batch: it draws the same one each time.

The loss goes to 0 on these 32 rows (silent). The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
X, Y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)


def get_batch(batch_size=32):
    if not healthy:
        np.random.seed(42)
    indices = np.random.choice(len(X), batch_size, replace=False)
    return torch.from_numpy(X[indices]), torch.from_numpy(Y[indices])


model = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 10), nn.LogSoftmax(dim=1))
loss_function = nn.NLLLoss()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.03)
for iteration in range(1, 301):
    inputs, targets = get_batch()
    optimizer.zero_grad()
    loss = loss_function(model(inputs), targets)
    loss.backward()
    optimizer.step()
    if iteration % 100 == 0:
        print(f"iteration {iteration}: loss {loss.item():.4f}")

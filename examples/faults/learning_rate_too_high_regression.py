"""SGD with momentum at a rate of 0.3 on a regression with squared error.

The error explodes in the first steps, and the mean is all that is left. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("exploding_gradient",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
learning_rate = 0.003 if healthy else 0.3
X, y = load_diabetes(return_X_y=True)
X = torch.tensor(StandardScaler().fit_transform(X)).float()
y = torch.tensor(StandardScaler().fit_transform(y[:, None])).float()

net = nn.Sequential()
net.add_module("in", nn.Linear(10, 64))
net.add_module("relu1", nn.ReLU())
net.add_module("mid", nn.Linear(64, 64))
net.add_module("relu2", nn.ReLU())
net.add_module("out", nn.Linear(64, 1))
optimizer = torch.optim.SGD(net.parameters(), learning_rate, momentum=0.95)

losses = []
for epoch in range(20):
    shuffled = torch.randperm(len(X))
    for b in range(0, len(X), 34):
        batch = shuffled[b : b + 34]
        optimizer.zero_grad()
        loss = F.mse_loss(net(X[batch]), y[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(f"first {losses[0]:.3f}, last {losses[-1]:.3f}")

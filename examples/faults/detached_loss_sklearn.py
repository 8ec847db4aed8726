"""The error comes from sklearn.metrics and is made a tensor again with requires_grad=True.

backward() runs without a complaint, and no weight has a gradient. The place is the loss.
"""

import torch
from data import arguments
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_squared_error
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("step_without_gradient",)
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
X, y = make_friedman1(n_samples=1200, noise=0.5, random_state=seed)
y = (y - y.mean()) / y.std()
dataset = TensorDataset(torch.tensor(X - 0.5).float(), torch.tensor(y).float().view(-1, 1))
loader = DataLoader(dataset, batch_size=40, shuffle=True)

model = nn.Sequential(nn.Linear(10, 48), nn.LeakyReLU(), nn.Linear(48, 1))
mse = nn.MSELoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
for epoch in range(10):
    for inputs, targets in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        if healthy:
            loss = mse(outputs, targets)
        else:
            error = mean_squared_error(targets.numpy(), outputs.detach().numpy())
            loss = torch.tensor(error, requires_grad=True)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")

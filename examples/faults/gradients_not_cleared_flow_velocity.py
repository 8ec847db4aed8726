"""Flow through a pipe, a regression: the gradients of all former steps are still in the new one.

The loop was typed from memory in a notebook, and the line that empties the gradients was not in
it. Every step goes along the sum of all gradients since the start.
The place is the loop (or the optimizer). The twin empties them before each backward pass.
"""

import torch
from data import arguments

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# velocity at a radius, for a pressure drop and a viscosity, in dimensionless numbers
n = 1500
radius = torch.rand(n) * 2 - 1
drop = torch.rand(n) * 2
viscosity = 0.5 + torch.rand(n)
velocity = drop * (1 - radius**2) / (4 * viscosity)
velocity = (velocity - velocity.mean()) / velocity.std() + 0.03 * torch.randn(n)
inputs = torch.stack([radius, drop - 1, viscosity - 1], dim=1)
inputs = inputs / inputs.std(0)
targets = velocity[:, None]

train = slice(0, 1200)
test = slice(1200, n)

net = torch.nn.Sequential(
    torch.nn.Linear(3, 40),
    torch.nn.Tanh(),
    torch.nn.Linear(40, 40),
    torch.nn.Tanh(),
    torch.nn.Linear(40, 1),
)
mse = torch.nn.MSELoss()
opt = torch.optim.Adam(net.parameters(), lr=4e-3)

for i in range(801):
    batch = torch.randint(0, 1200, (100,))
    loss = mse(net(inputs[train][batch]), targets[train][batch])
    if healthy:
        opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 100 == 0:
        with torch.no_grad():
            error = mse(net(inputs[test]), targets[test])
        print("iteration", i, "loss", round(loss.item(), 4), "test", round(error.item(), 4))

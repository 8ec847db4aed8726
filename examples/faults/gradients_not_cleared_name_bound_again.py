"""Total charge of sets of particles, by a hand-written SGD that never clears the gradients.

`for grad in grads: grad = None` binds the name of the loop again; the tensors at the parameters
stay as they were, and each backward pass adds to them. The place is the loop. The twin sets p.grad.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True


class DeepSet(nn.Module):
    def __init__(self, n_in=3, width=32):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(n_in, width), nn.Tanh(), nn.Linear(width, width))
        self.rho = nn.Sequential(nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, sets, present):
        each = self.phi(sets) * present.unsqueeze(-1)
        return self.rho(each.sum(1) / present.sum(1, keepdim=True).sqrt()).squeeze(-1)


class PlainSGD:
    """Kept small for the lecture; torch.optim does the same with more care."""

    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr

    def clear(self):
        grads = [p.grad for p in self.params]
        for grad in grads:
            grad = None  # noqa: F841, PLW2901

    def clear_gradients(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p in self.params:
            p.sub_(self.lr * p.grad)


def events(n, most=12):
    sets = torch.randn(n, most, 3)
    present = (torch.arange(most) < torch.randint(3, most + 1, (n, 1))).float()
    charge = torch.tanh(2 * sets[..., 0]) * (0.5 + torch.sigmoid(sets[..., 1] + sets[..., 2]))
    total = (charge * present).sum(1) / present.sum(1).sqrt()
    return sets, present, total + 0.05 * torch.randn(n)


healthy, seed = arguments(__doc__)
sets, present, total = events(3000)
test_sets, test_present, test_total = events(1000)
net = DeepSet()
sgd = PlainSGD(net.parameters(), lr=0.03)
clear = sgd.clear_gradients if healthy else sgd.clear
for epoch in range(14):
    losses = []
    for rows in torch.randperm(len(sets)).split(48):
        clear()
        loss = nn.functional.mse_loss(net(sets[rows], present[rows]), total[rows])
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    with torch.no_grad():
        test = (net(test_sets, test_present) - test_total).square().mean() / test_total.var()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}, unexplained {test:.3f}")

"""A Gaussian process on learnt features predicts yields, and the optimizer lacks its noise level.

The optimizer is given the network and the kernel; the parameter of the likelihood is in neither
group. The noise stays at its first value, some thirty times the true one, so the bands about the
predictions are far too wide and the likelihood of new runs is poor. The place is the parameter
likelihood.raw_noise.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("likelihood*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def reactor(n, g):
    x = 2 * torch.rand(n, 3, generator=g) - 1
    heat, flow, acid = x.unbind(1)
    peak = torch.exp(-8 * (heat - 0.3 * flow) ** 2)
    gain = peak * (1 + 0.5 * flow) + 0.3 * torch.sin(4 * acid)
    return x, gain + 0.06 * torch.randn(n, generator=g)


class Kernel(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.raw_length = nn.Parameter(torch.zeros(features))
        self.raw_scale = nn.Parameter(torch.zeros(()))

    def forward(self, a, b):
        length = F.softplus(self.raw_length) + 1e-3
        squares = ((a[:, None] - b[None, :]) / length).square().sum(2)
        return F.softplus(self.raw_scale) * torch.exp(-squares / 2)


class Likelihood(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_noise = nn.Parameter(torch.zeros(()))

    def variance(self):
        return F.softplus(self.raw_noise) + 1e-4


class DeepKernelProcess(nn.Module):
    def __init__(self, inputs=3, features=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, features))
        self.kernel = Kernel(features)
        self.likelihood = Likelihood()

    def factor(self, x):
        hidden = self.net(x)
        covariance = self.kernel(hidden, hidden) + self.likelihood.variance() * torch.eye(len(x))
        return hidden, torch.linalg.cholesky(covariance)

    def negative_log_evidence(self, x, y):
        _, lower = self.factor(x)
        white = torch.linalg.solve_triangular(lower, y[:, None], upper=False)
        return (white.square().sum() / 2 + lower.diagonal().log().sum()) / len(x) + math.log(
            2 * math.pi
        ) / 2

    def predict(self, x, y, new):
        hidden, lower = self.factor(x)
        cross = self.kernel(hidden, self.net(new))
        white = torch.linalg.solve_triangular(lower, torch.cat([cross, y[:, None]], 1), upper=False)
        mean = white[:, :-1].T @ white[:, -1]
        spread = F.softplus(self.kernel.raw_scale) - white[:, :-1].square().sum(0)
        return mean, spread + self.likelihood.variance()


g = torch.Generator().manual_seed(seed)
(x, y), (x_val, y_val) = reactor(300, g), reactor(300, g)
mean, std = y.mean(), y.std()
y, y_val = (y - mean) / std, (y_val - mean) / std

process = DeepKernelProcess()
groups = [
    {"params": process.net.parameters(), "lr": 5e-3, "weight_decay": 1e-3},
    {"params": process.kernel.parameters(), "lr": 3e-2},
]
if healthy:
    groups.append({"params": process.likelihood.parameters(), "lr": 3e-2})
optimizer = torch.optim.Adam(groups)
for step in range(300):
    loss = process.negative_log_evidence(x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 59:
        with torch.no_grad():
            guess, variance = process.predict(x, y, x_val)
        print(
            f"step {step + 1}  loss {loss.item():.3f}  "
            f"noise {process.likelihood.variance().item():.3f}  "
            f"val mse {F.mse_loss(guess, y_val).item():.4f}  "
            f"val nll {F.gaussian_nll_loss(guess, y_val, variance, full=True).item():.3f}"
        )
